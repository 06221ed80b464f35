//! Names of services that hand out keys.
//!
//! `algolia = "…"` names no key and holds one. A value that looks drawn, assigned on a line that names
//! such a service, is taken for one.

/// Sorted, in lower case, without anything that divides words. None is an ordinary word of code.
// Several names to a line: one for each would bury the code below under a list.
#[rustfmt::skip]
static SERVICES: &[&str] = &[
    "abuseipdb", "accuweather", "adafruit", "adzuna", "airbrake", "airship", "airtable",
    "airvisual", "aiven", "alchemy", "algolia", "alibaba", "alienvault", "amadeus", "ambee",
    "amplitude", "anthropic", "anypoint", "apifonica", "apify", "apilayer", "apimetrics",
    "apitemplate", "appcues", "appdynamics", "appfollow", "apptivo", "artifactory", "asana",
    "ashby", "assemblyai", "atlassian", "auth0", "autodesk", "autoklose", "aviationstack",
    "axonaut", "aylien", "ayrshare", "azure",
    "bannerbear", "baremetrics", "beamer", "beebole", "besttime", "betterstack", "billomat",
    "bitbar", "bitbucket", "bitfinex", "bitly", "bitmex", "bitrise", "blazemeter", "blocknative",
    "bluesnap", "bombbomb", "boostnote", "borgbase", "braintree", "brandfetch", "browserstack",
    "browshot", "buddyns", "budibase", "bugherd", "bugsnag", "buildkite", "bulksms", "buttercms",
    "caflou", "calendarific", "calendly", "campayn", "cannyio", "capsulecrm", "captaindata",
    "carboninterface", "cashboard", "censys", "centralstation", "cexio", "chargebee", "chartmogul",
    "chatfuel", "checkio", "checklyhq", "checkvist", "circleci", "clarifai", "clearbit",
    "clickhelp", "clicksend", "clickup", "cliengo", "clockify", "cloudconvert", "cloudflare",
    "cloudimage", "cloudinary", "cloudmersive", "cloudplan", "cloudsmith", "cloudways", "cloverly",
    "codacy", "codeclimate", "codecov", "codemagic", "codequiry", "codeship", "cohere", "coinapi",
    "coinbase", "coinlayer", "coinlib", "collect2", "commercejs", "companyhub", "confluent",
    "contentful", "conversiontools", "convertapi", "convertkit", "convier", "couchbase",
    "countrylayer", "coveralls", "craftmypdf", "crowdin", "crowdstrike", "cryptocompare",
    "currencyfreaks", "currencylayer", "currencyscoop", "currentsapi", "customerguru", "customerio",
    "databricks", "datadog", "datafire", "datagov", "deepai", "deepgram", "deepseek", "delighted",
    "demio", "detectify", "detectlanguage", "dfuse", "dialogflow", "diffbot", "diggernaut",
    "digitalocean", "discord", "disqus", "dnscheck", "docparser", "documo", "docusign", "doppler",
    "dotmailer", "dovico", "drata", "dronahq", "droneci", "dropbox", "duply", "dwolla", "dynalist",
    "dynatrace", "dyspatch",
    "eagleeye", "easyinsight", "easypost", "ecostruxure", "edamam", "edenai", "eightxeight",
    "elevenlabs", "enablex", "etherscan", "ethplorer", "eventbrite", "everhour", "exchangerate",
    "exportsdk", "extractorapi",
    "facebook", "faceplusplus", "fastforex", "fastly", "fastmail", "feedier", "fetchrss", "fibery",
    "figma", "fileio", "finage", "financialmodel", "finicity", "finnhub", "firebase", "fireworks",
    "fixerio", "flagsmith", "flatio", "fleetbase", "flickr", "flightapi", "flightlabs",
    "flightstats", "flutterwave", "formbucket", "formcraft", "formsite", "foursquare", "frameio",
    "freshbooks", "freshdesk", "freshworks", "fullstory", "fusebill", "fxmarket",
    "gcloud", "geckoboard", "gengo", "geoapify", "geocodify", "geocodio", "geoipify", "getgeoapi",
    "getgist", "getresponse", "getsandbox", "gitalk", "github", "gitlab", "gitter", "glassnode",
    "glitterlyapi", "gocanvas", "gocardless", "godaddy", "goodday", "googleai", "googlemaps",
    "grafana", "grafbase", "graphcms", "graphhopper", "gravatar", "groovehq", "groq", "gtmetrix",
    "guardianapi", "gumroad", "gyazo",
    "happyscribe", "harvest", "hasura", "hellosign", "helpcrunch", "helpscout", "hereapi", "heroku",
    "hetzner", "hiveage", "holidayapi", "honeybadger", "honeycomb", "hookdeck", "html2pdf",
    "hubspot", "hubstaff", "huggingface", "hunterio", "hybiscus", "hypertrack",
    "ibmcloud", "iconfinder", "iexapis", "iexcloud", "imagekit", "imagga", "imgbb", "infobip",
    "infracost", "infura", "inngest", "insightly", "instabot", "instagram", "instamojo", "intercom",
    "interseller", "intra42", "intrinio", "invoiceocean", "ip2location", "ipapi", "ipdata",
    "ipgeolocation", "ipify", "ipinfo", "ipinfodb", "ipquality", "ipstack",
    "jenkins", "jfrog", "jiratoken", "jotform", "jumpcloud", "jumpseller",
    "kairos", "karmacrm", "keenio", "kickbox", "kintone", "klaviyo", "klipfolio", "knapsackpro",
    "kontent", "kraken", "kucoin", "kylas",
    "langchain", "langfuse", "langsmith", "languagelayer", "larksuite", "launchdarkly",
    "leadfeeder", "lemlist", "lemonsqueezy", "lendflow", "lessannoying", "lexigram", "linearapi",
    "linenotify", "linkedin", "liveagent", "livestorm", "loadmill", "locationiq", "logdna",
    "loggly", "loginradius", "logrocket", "logz", "lokalise", "loyverse", "lunchmoney",
    "m3o", "macaddress", "madkudu", "magento", "mailboxlayer", "mailchimp", "mailerlite",
    "mailersend", "mailgun", "mailjet", "mailmodo", "mailsac", "mailtrap", "mailwizz", "mandrill",
    "mapbox", "mapquest", "marketstack", "mattermost", "mavenlink", "maxmind", "meaningcloud",
    "mediastack", "meistertask", "mesibo", "messagebird", "metaapi", "metabase", "metrilo",
    "mindmeister", "mistral", "mixmax", "mixpanel", "mockaroo", "mongodb", "monkeylearn",
    "moonclerk", "moosend", "moralis", "mparticle", "mrticktock", "myfreshworks", "myintervals",
    "nango", "nethunt", "netlify", "netsuite", "neutrino", "newrelic", "newsapi", "newscatcher",
    "nexmo", "nftport", "ngcapi", "ngrok", "nicereply", "nightfall", "nomics", "noticeable",
    "notion", "novita", "nozbe", "nuget", "numverify", "nutritionix", "nvidia", "nylas", "nytimes",
    "oanda", "okta", "omnisend", "onedesk", "onelogin", "onesignal", "onwater", "oopspam", "openai",
    "opencage", "opencorporates", "openrouter", "openuv", "openvpn", "openweather", "opsgenie",
    "optimizely", "owlbot",
    "packagecloud", "pagarme", "pagerduty", "pandadoc", "pandascore", "paperform", "paperspace",
    "papertrail", "paralleldots", "parsehub", "parseur", "partnerstack", "passbase", "pastebin",
    "paydirt", "payjunction", "paymo", "paymongo", "paypal", "paystack", "payu", "pdflayer",
    "pdfshift", "peopledata", "pepipost", "perplexity", "pinata", "pinecone", "pipedream",
    "pipedrive", "pixabay", "plaid", "planetscale", "planview", "planyo", "plivo", "pollsapi",
    "poloniex", "polygonio", "portainer", "positionstack", "postageapp", "posthog", "postman",
    "postmark", "powerbi", "powrbot", "prodpad", "prospectcrm", "proxycrawl", "pubnub", "pulumi",
    "purestake", "pushbullet", "pusher", "pyowm",
    "qdrant", "qualaroo", "qubole", "quickmetrics", "quicknode",
    "rabbitmq", "rapidapi", "rawg", "raygun", "razorpay", "reachmail", "reallysimple", "rebilly",
    "rebrandly", "rechargepay", "remotereturn", "replicate", "replyio", "requestfinance",
    "restpack", "revampcrm", "ringcentral", "ritekit", "robinhood", "rocketreach", "rollbar",
    "roninapp", "rownd", "rubygems", "runpod", "runrunit", "runscope",
    "salesblink", "salescookie", "salesflare", "salesforce", "salesmate", "satismeter", "saucelabs",
    "scalewaykey", "scrapeowl", "scraperapi", "scraperbox", "scrapestack", "scrapfly",
    "scrapingant", "scrapingbee", "screenly", "screenshotapi", "scrutinizer", "seatgeek",
    "securitytrails", "selectpdf", "sendbird", "sendgrid", "sendinblue", "sendpulse", "sentry",
    "serpapi", "serphouse", "serpstack", "settlemint", "sheety", "sherpadesk", "shipday", "shippo",
    "shodan", "shopify", "shortio", "shotstack", "shutterstock", "signalwire", "signaturit",
    "signupgenius", "signzy", "sigopt", "simfin", "simplesat", "simplynoted", "simvoly", "sinch",
    "sinchmessage", "sirv", "siteleaf", "skrappio", "skybiometry", "slack", "smartling",
    "smartsheets", "smartystreets", "smooch", "snipcart", "snowflake", "snyk", "snykkey",
    "solarwinds", "sonarcloud", "sonarqube", "sonatype", "sourcegraph", "spacelift", "sparkpost",
    "speechtext", "splunk", "spoonacular", "sportradar", "sportsmonk", "spotify", "squarespace",
    "squareup", "sslmate", "statuscake", "statuspage", "statuspal", "stitchdata", "stockdata",
    "storecove", "stormboard", "stormglass", "storyblok", "storychief", "strava", "streakcrm",
    "stripe", "stytch", "sugester", "sumologic", "sumsub", "supabase", "supernotes", "svix",
    "swiftype", "synthesia",
    "tailscale", "tallyfy", "tatumio", "tavily", "taxjar", "teamgate", "teamviewer", "teamwork",
    "technicalanalysis", "telegram", "telesign", "teletype", "telnyx", "temporalio", "tensorboard",
    "terraform", "text2data", "textmagic", "theoddsapi", "thingsboard", "thinkific", "thousandeyes",
    "thumbtack", "ticketmaster", "tickettailor", "tiingo", "timecamp", "timescale", "timezoneapi",
    "tineswebhook", "tinypng", "tmetric", "todoist", "toggl", "tokeet", "tomorrowio", "tomtom",
    "tradier", "transferwise", "travelpayouts", "travisci", "trello", "trengo", "trustpilot",
    "twelvedata", "twilio", "twitch", "twitter", "tyntec", "typeform", "typetalk",
    "ubidots", "uclassify", "unplugg", "unsplash", "upcdatabase", "uplead", "uploadcare", "upstash",
    "uptimerobot", "upwave", "urlscan", "userflow", "userlist", "userstack", "uservoice",
    "vagrantcloud", "vatlayer", "vercel", "verimail", "veriphone", "versioneye", "viewneo", "vimeo",
    "virustotal", "visualcrossing", "voiceflow", "voicegain", "vonage", "voodoosms", "vouchery",
    "vpnapi", "vultr", "vyte",
    "wakatime", "walkscore", "wandb", "weatherapi", "weatherbit", "weatherstack", "weaviate",
    "webex", "webflow", "webscraper", "webscraping", "wepay", "whoxy", "wistia", "wompi",
    "woocommerce", "workos", "worksnaps", "workstack", "worldcoin", "worldweather", "wrike",
    "xero",
    "yandex", "yelp", "youneedabudget", "yousign",
    "zapier", "zencoder", "zendesk", "zenkit", "zenrows", "zenscrape", "zenserp", "zeplin",
    "zerobounce", "zerotier", "zipapi", "zipbooks", "zipcodeapi", "zipcodebase", "zoho",
    "zonkafeedback", "zoominfo", "zulip",
];

/// General words that say the same: whatever is assigned here opens something.
static GENERAL: &[&str] = &[
    "api",
    "apikey",
    "auth",
    "bearer",
    "bot",
    "client",
    "connection",
    "login",
    "oauth",
    "sdk",
    "signing",
    "webhook",
];

/// No service's name is longer.
const LONGEST_SERVICE_NAME: usize = 24;

/// Whether a line names a service, or says that it is about one.
pub(super) fn is_named_in(line: &[u8]) -> bool {
    let folded = folded(line);
    (0..folded.len()).any(|at| {
        let starts_word = at == 0 || folded[at - 1] == b' ';
        let rest = &folded[at..folded.len().min(at + LONGEST_SERVICE_NAME)];
        starts_with_one_of(SERVICES, rest)
            || starts_word && GENERAL.iter().any(|word| rest.starts_with(word.as_bytes()))
    })
}

/// Whether a line names a service where a word begins.
pub(super) fn names_service(line: &[u8]) -> bool {
    let folded = folded(line);
    (0..folded.len()).any(|at| {
        let starts_word = at == 0 || folded[at - 1] == b' ';
        let rest = &folded[at..folded.len().min(at + LONGEST_SERVICE_NAME)];
        starts_word && starts_with_one_of(SERVICES, rest)
    })
}

/// Words divide names, and nothing else does: `Api_Layer` is `apilayer`.
fn folded(line: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(line.len());
    for byte in line {
        if byte.is_ascii_alphanumeric() {
            folded.push(byte.to_ascii_lowercase());
        } else if *byte != b'_' && *byte != b'-' {
            folded.push(b' ');
        }
    }
    folded
}

/// Whether this word is the name of such a service, and nothing else.
pub(super) fn is_service(word: &[u8]) -> bool {
    let folded = word.to_ascii_lowercase();
    SERVICES
        .binary_search_by(|known| known.as_bytes().cmp(&folded))
        .is_ok()
}

/// `sorted` holds a beginning of `text`. All that begin like it stand before it, so few are looked at.
fn starts_with_one_of(sorted: &[&str], text: &[u8]) -> bool {
    let Some(first) = text.first_chunk::<3>() else {
        return false;
    };
    let from = sorted.partition_point(|word| word.as_bytes() < &first[..]);
    sorted[from..]
        .iter()
        .take_while(|word| word.as_bytes().starts_with(first))
        .any(|word| text.starts_with(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_short() {
        assert!(SERVICES.is_sorted());
        assert!(
            SERVICES
                .iter()
                .all(|word| word.len() <= LONGEST_SERVICE_NAME && word.len() >= 3)
        );
    }

    #[test]
    fn a_service_is_found_in_whatever_spelling() {
        for line in [
            "apiLayer := ",
            "ALGOLIA_ADMIN=",
            "  \"new_relic\": ",
            "my-sendgrid: ",
        ] {
            assert!(is_named_in(line.as_bytes()), "{line}");
        }
        for line in ["let name = ", "version: ", "rapid = "] {
            assert!(!is_named_in(line.as_bytes()), "{line}");
        }
    }
}

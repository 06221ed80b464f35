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
    "amplitude", "anthropic", "apify", "apilayer", "apimetrics", "apitemplate", "appcues",
    "appdynamics", "appfollow", "apptivo", "artifactory", "asana", "ashby", "assemblyai",
    "atlassian", "auth0", "autodesk", "autoklose", "aviationstack", "axonaut", "aylien", "ayrshare",
    "azure",
    "bannerbear", "baremetrics", "beamer", "beebole", "besttime", "billomat", "bitbucket",
    "bitfinex", "bitly", "bitmex", "blocknative", "bluesnap", "bombbomb", "boostnote", "borgbase",
    "braintree", "brandfetch", "browserstack", "browshot", "buddyns", "bugherd", "bugsnag",
    "buildkite", "bulksms", "buttercms",
    "caflou", "calendarific", "calendly", "campayn", "cannyio", "capsulecrm", "captaindata",
    "carboninterface", "cashboard", "censys", "centralstation", "cexio", "chargebee", "chartmogul",
    "checkio", "checklyhq", "checkvist", "circleci", "clarifai", "clearbit", "clickhelp",
    "clicksend", "clickup", "cliengo", "clockify", "cloudconvert", "cloudflare", "cloudimage",
    "cloudmersive", "cloudplan", "cloudsmith", "cloudways", "cloverly", "codacy", "codeclimate",
    "codecov", "codemagic", "codequiry", "cohere", "coinapi", "coinbase", "coinlayer", "coinlib",
    "commercejs", "companyhub", "confluent", "contentful", "conversiontools", "convertapi",
    "convertkit", "convier", "couchbase", "countrylayer", "coveralls", "craftmypdf", "crowdin",
    "cryptocompare", "currencyfreaks", "currencylayer", "currencyscoop", "currentsapi",
    "customerguru", "customerio",
    "databricks", "datadog", "datafire", "datagov", "deepai", "deepgram", "deepseek", "delighted",
    "demio", "detectify", "detectlanguage", "dfuse", "diffbot", "diggernaut", "digitalocean",
    "discord", "disqus", "dnscheck", "docparser", "documo", "docusign", "doppler", "dotmailer",
    "dovico", "drata", "dronahq", "droneci", "dropbox", "duply", "dwolla", "dynalist", "dynatrace",
    "dyspatch",
    "eagleeye", "easyinsight", "ecostruxure", "edamam", "edenai", "eightxeight", "elevenlabs",
    "enablex", "etherscan", "ethplorer", "eventbrite", "everhour", "exchangerate", "exportsdk",
    "extractorapi",
    "facebook", "faceplusplus", "fastforex", "fastly", "feedier", "fetchrss", "fibery", "figma",
    "fileio", "finage", "financialmodel", "finicity", "finnhub", "firebase", "fixerio", "flatio",
    "fleetbase", "flickr", "flightapi", "flightlabs", "flightstats", "flutterwave", "formbucket",
    "formcraft", "formsite", "foursquare", "frameio", "freshbooks", "freshdesk", "freshworks",
    "fullstory", "fusebill", "fxmarket",
    "gcloud", "geckoboard", "gengo", "geoapify", "geocodify", "geocodio", "geoipify", "getgeoapi",
    "getgist", "getresponse", "getsandbox", "github", "gitlab", "gitter", "glitterlyapi",
    "gocanvas", "gocardless", "godaddy", "goodday", "googleai", "googlemaps", "grafana", "graphcms",
    "graphhopper", "groovehq", "groq", "gtmetrix", "gumroad", "gyazo",
    "happyscribe", "harvest", "hasura", "hellosign", "helpcrunch", "helpscout", "hereapi", "heroku",
    "hiveage", "holidayapi", "honeybadger", "honeycomb", "html2pdf", "hubspot", "huggingface",
    "hunterio", "hybiscus", "hypertrack",
    "iconfinder", "iexapis", "iexcloud", "imagekit", "imagga", "infobip", "infracost", "infura",
    "insightly", "instabot", "instagram", "instamojo", "intercom", "interseller", "intra42",
    "intrinio", "invoiceocean", "ip2location", "ipapi", "ipdata", "ipgeolocation", "ipify",
    "ipinfo", "ipinfodb", "ipquality", "ipstack",
    "jiratoken", "jotform", "jumpcloud", "jumpseller",
    "kairos", "karmacrm", "keenio", "kickbox", "klaviyo", "klipfolio", "knapsackpro", "kontent",
    "kraken", "kucoin", "kylas",
    "langfuse", "langsmith", "languagelayer", "larksuite", "launchdarkly", "leadfeeder", "lemlist",
    "lemonsqueezy", "lendflow", "lessannoying", "lexigram", "linearapi", "linenotify", "linkedin",
    "liveagent", "livestorm", "loadmill", "locationiq", "loggly", "loginradius", "logz", "lokalise",
    "loyverse",
    "m3o", "macaddress", "madkudu", "mailboxlayer", "mailchimp", "mailerlite", "mailgun", "mailjet",
    "mailmodo", "mailsac", "mandrill", "mapbox", "mapquest", "marketstack", "mattermost",
    "mavenlink", "maxmind", "meaningcloud", "mediastack", "meistertask", "mesibo", "messagebird",
    "metaapi", "metabase", "metrilo", "mindmeister", "mistral", "mixmax", "mixpanel", "mockaroo",
    "mongodb", "monkeylearn", "moonclerk", "moosend", "moralis", "mparticle", "mrticktock",
    "myfreshworks", "myintervals",
    "nethunt", "netlify", "netsuite", "neutrino", "newrelic", "newsapi", "newscatcher", "nexmo",
    "nftport", "ngcapi", "ngrok", "nicereply", "noticeable", "notion", "nozbe", "numverify",
    "nutritionix", "nylas", "nytimes",
    "oanda", "okta", "omnisend", "onedesk", "onelogin", "onesignal", "onwater", "oopspam", "openai",
    "opencage", "openrouter", "openuv", "openvpn", "openweather", "opsgenie", "optimizely",
    "owlbot",
    "packagecloud", "pagarme", "pagerduty", "pandadoc", "pandascore", "paperform", "paralleldots",
    "parsehub", "parseur", "partnerstack", "passbase", "pastebin", "paymo", "paymongo", "paypal",
    "paystack", "pdflayer", "pdfshift", "peopledata", "pepipost", "perplexity", "pinata",
    "pinecone", "pipedream", "pipedrive", "pixabay", "plaid", "planetscale", "planview", "plivo",
    "pollsapi", "poloniex", "positionstack", "postageapp", "posthog", "postman", "postmark",
    "powrbot", "prodpad", "proxycrawl", "pubnub", "pulumi", "purestake", "pushbullet", "pusher",
    "qualaroo", "qubole", "quickmetrics",
    "rabbitmq", "rapidapi", "rawg", "razorpay", "reachmail", "reallysimple", "rebrandly",
    "rechargepay", "remotereturn", "replicate", "replyio", "requestfinance", "restpack",
    "revampcrm", "ringcentral", "ritekit", "robinhood", "rocketreach", "rollbar", "roninapp",
    "rownd", "rubygems", "runrunit",
    "salesblink", "salescookie", "salesflare", "salesforce", "salesmate", "satismeter", "saucelabs",
    "scalewaykey", "scrapeowl", "scraperapi", "scraperbox", "scrapestack", "scrapfly",
    "scrapingant", "scrapingbee", "scrutinizer", "securitytrails", "selectpdf", "sendbird",
    "sendgrid", "sendinblue", "sentry", "serphouse", "serpstack", "sheety", "sherpadesk", "shipday",
    "shippo", "shodan", "shopify", "shotstack", "shutterstock", "signalwire", "signaturit",
    "signupgenius", "signzy", "sigopt", "simfin", "simplesat", "simplynoted", "simvoly",
    "sinchmessage", "siteleaf", "skrappio", "skybiometry", "slack", "smartsheets", "smartystreets",
    "smooch", "snipcart", "snowflake", "snykkey", "sonarcloud", "sonarqube", "sourcegraph",
    "sparkpost", "speechtext", "splunk", "spoonacular", "sportradar", "sportsmonk", "spotify",
    "squarespace", "squareup", "sslmate", "statuscake", "statuspage", "statuspal", "stitchdata",
    "stockdata", "storecove", "stormboard", "stormglass", "storyblok", "storychief", "strava",
    "stripe", "stytch", "sugester", "sumologic", "supabase", "supernotes", "swiftype",
    "tailscale", "tallyfy", "tatumio", "tavily", "taxjar", "teamgate", "teamviewer", "teamwork",
    "telegram", "telesign", "teletype", "telnyx", "terraform", "text2data", "textmagic",
    "theoddsapi", "thinkific", "thousandeyes", "ticketmaster", "tickettailor", "tiingo", "timecamp",
    "timezoneapi", "tineswebhook", "tmetric", "todoist", "toggl", "tokeet", "tomorrowio", "tomtom",
    "tradier", "transferwise", "travelpayouts", "travisci", "trello", "trengo", "twelvedata",
    "twilio", "twitch", "twitter", "tyntec", "typeform", "typetalk",
    "ubidots", "unplugg", "unsplash", "upcdatabase", "uplead", "uploadcare", "uptimerobot",
    "upwave", "urlscan", "userflow", "userstack",
    "vatlayer", "vercel", "verimail", "veriphone", "versioneye", "viewneo", "virustotal",
    "visualcrossing", "voiceflow", "voicegain", "vonage", "voodoosms", "vouchery", "vpnapi",
    "vultr", "vyte",
    "walkscore", "weatherbit", "weatherstack", "webex", "webflow", "webscraper", "webscraping",
    "wepay", "whoxy", "wistia", "woocommerce", "worksnaps", "workstack", "worldcoin",
    "worldweather", "wrike",
    "yandex", "yelp", "youneedabudget", "yousign",
    "zapier", "zendesk", "zenrows", "zenscrape", "zenserp", "zeplin", "zerobounce", "zerotier",
    "zipapi", "zipbooks", "zoho", "zonkafeedback", "zulip",
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
const LONGEST: usize = 24;

/// Whether a line names a service, or says that it is about one.
pub(super) fn is_named_in(line: &[u8]) -> bool {
    // Words divide names, and nothing else does: `Api_Layer` is `apilayer`.
    let mut folded = Vec::with_capacity(line.len());
    for byte in line {
        if byte.is_ascii_alphanumeric() {
            folded.push(byte.to_ascii_lowercase());
        } else if *byte != b'_' && *byte != b'-' {
            folded.push(b' ');
        }
    }
    (0..folded.len()).any(|at| {
        let rest = &folded[at..folded.len().min(at + LONGEST)];
        let starts_word = at == 0 || folded[at - 1] == b' ';
        starts_with_one_of(SERVICES, rest)
            || starts_word && GENERAL.iter().any(|word| rest.starts_with(word.as_bytes()))
    })
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
                .all(|word| word.len() <= LONGEST && word.len() >= 3)
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

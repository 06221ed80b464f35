//! Java, which reads none of the usual variables.

use super::{LONG, OK, find, listen, out};
use crate::lab::local;
use crate::lab::origin::Origin;

#[tokio::test]
async fn java_finds_the_proxy() {
    let Some(java) = find("java_finds_the_proxy", "java") else {
        return;
    };
    let (plain, _) = Origin::answering(OK).await;
    let proxy = listen(&[local("plain.test", plain.at)], Vec::new(), None).await;
    let program = "import java.net.*; import java.net.http.*;\n\
        class Fetch { public static void main(String[] a) throws Exception {\n\
        var request = HttpRequest.newBuilder(URI.create(a[0])).build();\n\
        var text = HttpResponse.BodyHandlers.ofString();\n\
        System.out.println(HttpClient.newHttpClient().send(request, text).body());\n\
        System.out.println(new String(new URL(a[0]).openStream().readAllBytes()));\n\
        } }\n";
    std::fs::write(proxy.path("Fetch.java"), program).unwrap();
    let url = format!("http://plain.test:{}/", plain.at.port());
    let told = proxy.run_for(LONG, &java, &["Fetch.java", &url]).await;
    if out(&told).contains("jdk.compiler") {
        eprintln!("SKIP: java_finds_the_proxy: there is no compiler");
        return;
    }
    let told = String::from_utf8_lossy(&told.stdout).into_owned() + &out(&told);
    assert!(told.starts_with("hello\nhello\n"), "{told}");
}

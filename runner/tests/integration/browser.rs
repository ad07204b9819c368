//! The page in a real browser: a hostile client's text stays text, at every width and in both colour schemes.
//!
//! Without Chromium the tests are skipped; with BROWSER_MUST_WORK=1 they fail instead.

mod devtools;
#[allow(dead_code, reason = "the client writes more than is looked for")]
#[path = "../fixtures/abusive-client/markup.rs"]
mod markup;

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use crate::kit::{Run, fixture};
use crate::needs_sandbox;
use devtools::Browser;
use markup::{MARKUP, TURNED_SHOWN};

/// Starts a browser, or returns from the test if none is installed.
macro_rules! needs_browser {
    () => {{
        needs_sandbox!();
        match devtools::program() {
            Ok(program) => Browser::start(program),
            Err(reason) => {
                return crate::kit::skip_without("browser", "BROWSER_MUST_WORK", &reason);
            }
        }
    }};
}

/// A page in a temporary directory.
struct Page {
    path: PathBuf,
    _directory: TempDir,
}

impl Page {
    fn of(run: Run) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.html");
        let output = run
            .argument("--report")
            .argument(format!("html={}", path.display()))
            .output();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(path.exists(), "no page: {said}");
        Self {
            path,
            _directory: directory,
        }
    }

    fn of_hostile_client() -> Self {
        let run = Run::case_b().client(fixture("abusive-client"));
        Self::of(
            run.client_argument("--deviate")
                .client_argument("markup-everywhere"),
        )
    }
}

/// Returns a page of every form, with its verdict.
fn pages() -> Vec<(&'static str, Page)> {
    let failed = Run::case_b().deviating("hostile-text");
    let audit = || Run::case("audit").client_argument(fixture("asking-client"));
    vec![
        ("PASSED", Page::of(Run::case_b())),
        ("PASSED", Page::of(Run::case_a())),
        ("FAILED", Page::of(failed)),
        ("FAILED", Page::of_hostile_client()),
        ("AUDITED", Page::of(audit())),
    ]
}

#[test]
fn markup_of_a_hostile_client_is_text_in_a_browser() {
    let mut browser = needs_browser!();
    let page = Page::of_hostile_client();
    browser.open(&page.path);
    assert_eq!(
        browser.evaluate("document.title"),
        "FAILED case-b: 6 checks failed, 28 passed, 6 skipped; not judged: programs"
    );
    let foreign = "document.querySelectorAll('script,img,iframe,object,embed,base,link,form,input,b,i,\
        meta[http-equiv=refresh],[style],[onload],[onerror],[onfocus],[src]').length";
    assert_eq!(browser.evaluate(foreign), 0);
    assert_eq!(
        browser.evaluate("document.querySelectorAll('h1').length"),
        1
    );
    assert_eq!(browser.evaluate("document.styleSheets.length"), 1);
    let codes = "[...document.querySelectorAll('code')].map(code => code.textContent)";
    let codes = browser.evaluate(codes);
    let codes: Vec<&str> = codes
        .as_array()
        .unwrap()
        .iter()
        .map(|code| code.as_str().unwrap())
        .collect();
    for text in MARKUP.into_iter().chain([TURNED_SHOWN]) {
        // In a file, a record, a path of a socket, and standard error.
        for shown in [
            format!("{text}/file"),
            format!("{text}/{text}"),
            format!("unix:/run/{text}"),
            text.to_owned(),
        ] {
            assert!(codes.contains(&&*shown), "{shown} is not shown");
        }
    }
    for text in MARKUP {
        // In a header, a request line, and a program's name.
        let bare = text.replace(' ', "");
        for shown in [
            bare.clone(),
            format!("GET /{bare}?{bare}"),
            format!("/home/sandbox/{text}/program"),
        ] {
            assert!(codes.contains(&&*shown), "{shown} is not shown");
        }
    }
    assert!(codes.contains(&"x-'&|note"));
}

#[test]
fn a_page_asks_for_nothing_and_breaks_no_policy() {
    let mut browser = needs_browser!();
    for (verdict, page) in pages() {
        browser.open(&page.path);
        let word = "document.querySelector('h1 .word').textContent.match(/[A-Z]{4,}/)[0]";
        assert_eq!(browser.evaluate(word), verdict);
        let asked: Vec<_> = browser.told("Network.requestWillBeSent");
        let asked: Vec<_> = asked
            .iter()
            .map(|event| &event["params"]["request"]["url"])
            .collect();
        assert_eq!(asked, [&json!(format!("file://{}", page.path.display()))]);
        for told in [
            "Log.entryAdded",
            "Audits.issueAdded",
            "Runtime.exceptionThrown",
        ] {
            assert_eq!(browser.told(told), [] as [&serde_json::Value; 0]);
        }
    }
}

/// If markup got into a page, the page's policy would still make the browser block it.
#[test]
fn the_policy_of_a_page_stops_what_would_get_into_it() {
    let mut browser = needs_browser!();
    let page = Page::of(Run::case_b());
    browser.open(&page.path);
    let title = browser.evaluate("document.title");
    let violations = browser.evaluate(
        "new Promise(resolve => {
            const broken = [];
            document.addEventListener('securitypolicyviolation', event => {
                broken.push(event.effectiveDirective);
                if (broken.length === 4) resolve(broken.sort());
            });
            const script = document.createElement('script');
            script.textContent = 'document.title = \"owned\"';
            document.body.append(script);
            document.body.insertAdjacentHTML('beforeend',
                '<img src=http://127.0.0.1:9/x onerror=\"document.title = 1\"><p style=\"color:red\">');
        })",
    );
    let expected = [
        "img-src",
        "script-src-attr",
        "script-src-elem",
        "style-src-attr",
    ];
    assert_eq!(violations, json!(expected));
    assert_eq!(browser.evaluate("document.title"), title);
}

#[test]
fn a_page_fits_a_desk_and_a_telephone() {
    let mut browser = needs_browser!();
    for (verdict, page) in pages() {
        for width in [1280, 390, 360] {
            browser.look(width, "light");
            browser.open(&page.path);
            // This includes folded sections.
            browser
                .evaluate("document.querySelectorAll('details').forEach(one => one.open = true)");
            let fits = "document.documentElement.scrollWidth <= innerWidth && innerWidth === WIDTH";
            let fits = fits.replace("WIDTH", &width.to_string());
            assert_eq!(browser.evaluate(&fits), true, "{verdict} at {width}");
            // No element is cut off either.
            let beyond = "[...document.querySelectorAll('main *, header *')].filter(one =>
                !one.closest('svg, .lanes, thead') && one.getBoundingClientRect().right > innerWidth + 1)
                .map(one => one.outerHTML.slice(0, 80))";
            assert_eq!(browser.evaluate(beyond), json!([]), "{verdict} at {width}");
        }
    }
}

/// Text and background have the contrast of WCAG 2.1 (4.5 to 1 at least).
#[test]
fn a_page_can_be_read_in_light_and_in_dark() {
    let mut browser = needs_browser!();
    for (verdict, page) in pages() {
        let grounds: Vec<_> = ["light", "dark"]
            .map(|scheme| {
                browser.look(1280, scheme);
                browser.open(&page.path);
                let faint = browser.evaluate(include_str!("browser/contrast.js"));
                assert_eq!(faint, json!([]), "{verdict} in {scheme}");
                browser.evaluate("getComputedStyle(document.body).backgroundColor")
            })
            .into();
        assert_ne!(grounds[0], grounds[1]);
    }
}

/// Print expands every folded section.
#[test]
fn what_is_folded_away_is_printed() {
    let mut browser = needs_browser!();
    let page = Page::of(Run::case_b());
    browser.open(&page.path);
    let heights = "[...document.querySelectorAll('details:not([open]) > :not(summary)')]
        .map(one => one.getBoundingClientRect().height > 0 && one.checkVisibility())";
    let on_screen = browser.evaluate(heights);
    browser.ask("Emulation.setEmulatedMedia", json!({"media": "print"}));
    let on_paper = browser.evaluate(heights);
    let all = |values: &serde_json::Value, wanted: bool| {
        let values = values.as_array().unwrap();
        !values.is_empty() && values.iter().all(|value| *value == wanted)
    };
    assert!(all(&on_screen, false), "{on_screen}");
    assert!(all(&on_paper, true), "{on_paper}");
    let pdf = browser.ask("Page.printToPDF", json!({"printBackground": false}));
    assert!(pdf["data"].as_str().unwrap().len() > 10_000);
}

/// The page is complete, and it is the only file in its directory.
#[test]
fn a_page_is_one_file() {
    needs_sandbox!();
    let page = Page::of(Run::case_b());
    let text = fs::read_to_string(&page.path).unwrap();
    assert!(text.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    assert!(text.ends_with("</html>\n"));
    let siblings = fs::read_dir(page.path.parent().unwrap()).unwrap();
    assert_eq!(siblings.count(), 1);
}

//! HTML report, read by a third-party parser.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use html5ever::tendril::TendrilSink as _;
use html5ever::{Attribute, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use sha2::{Digest as _, Sha256};

use super::ci::{audit_of, every_report, with_text_everywhere};
use super::*;

/// Texts that would be markup, a script or a request if they were not escaped.
const MARKUP: [&str; 12] = [
    "</style><script>document.title='owned'</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onfocus='alert(1)' autofocus='",
    "javascript:alert(1)",
    "]]><!--",
    "--><!DOCTYPE html><html>",
    "<meta http-equiv=refresh content=0;url=//x>",
    "</title></code></td></table></main>",
    "&lt;b&gt; &#60;script&#62; &amp;quot;",
    "<base href=//x><style>*{display:none}</style>",
    "\u{202e}\u{2066}<b>\u{0}\u{1b}[2J",
];

/// Elements of a page; none of them loads a file or runs a script.
const ELEMENTS: &str = "html head meta title style body header nav main section footer p h1 h2 h3 span a code dl dt dd \
    div ul ol li article details summary table thead tbody tr th td figure figcaption svg desc line rect path text";

/// Attributes that refer to no other file.
const ATTRIBUTES: &str = "lang charset http-equiv content name class id href title scope colspan role open data-label \
    aria-hidden aria-label aria-labelledby width height viewBox overflow x y x1 x2 y1 y2 rx d text-anchor";

pub(super) fn page(report: &Report) -> String {
    String::from_utf8(super::html::render(report).unwrap()).unwrap()
}

/// Parses a page as a browser does, and asserts that there is no parse error.
fn parsed(page: &str) -> RcDom {
    let dom = parse_document(RcDom::default(), Default::default()).one(page);
    let errors = dom.errors.borrow();
    assert!(errors.is_empty(), "{errors:?}");
    drop(errors);
    dom
}

/// Element of a page.
struct Element {
    name: String,
    attributes: Vec<Attribute>,
    node: Handle,
}

impl Element {
    fn value(&self, name: &str) -> Option<&str> {
        let mut all = self.attributes.iter();
        let found = all.find(|one| &*one.name.local == name);
        found.map(|attribute| &*attribute.value)
    }
}

/// Returns the elements below a node, in document order.
fn elements(node: &Handle) -> Vec<Element> {
    let mut found = Vec::new();
    let mut open = vec![node.clone()];
    while let Some(node) = open.pop() {
        if let NodeData::Element { name, attrs, .. } = &node.data {
            found.push(Element {
                name: name.local.to_string(),
                attributes: attrs.borrow().clone(),
                node: node.clone(),
            });
        }
        open.extend(node.children.borrow().iter().rev().cloned());
    }
    found
}

/// Returns the text below a node.
fn text_of(node: &Handle) -> String {
    let mut text = String::new();
    let mut open = vec![node.clone()];
    while let Some(node) = open.pop() {
        if let NodeData::Text { contents } = &node.data {
            text.push_str(&contents.borrow());
        }
        open.extend(node.children.borrow().iter().rev().cloned());
    }
    text
}

/// Returns the elements of a page with attribute names, classes and anchors, without text.
fn skeleton(dom: &RcDom) -> Vec<String> {
    let elements = elements(&dom.document).into_iter();
    elements
        .map(|one| {
            let names = one.attributes.iter().map(|one| &*one.name.local);
            let names = names.collect::<Vec<_>>().join(" ");
            let part = |name| one.value(name).unwrap_or_default();
            format!("{} {names} {} {}", one.name, part("class"), part("id"))
        })
        .collect()
}

/// Asserts that a page has no script, loads no file, and links only to anchors of its own.
#[track_caller]
fn assert_self_contained(dom: &RcDom) {
    let all = elements(&dom.document);
    let known: BTreeSet<&str> = ELEMENTS.split_whitespace().collect();
    let allowed: BTreeSet<&str> = ATTRIBUTES.split_whitespace().collect();
    let mut anchors = BTreeSet::new();
    for element in &all {
        let name = element.name.as_str();
        assert!(known.contains(name), "<{name}>");
        for attribute in &element.attributes {
            let attribute = &*attribute.name.local;
            assert!(allowed.contains(attribute), "<{name} {attribute}>");
        }
        if let Some(id) = element.value("id") {
            assert!(anchors.insert(id), "#{id} twice");
        }
        let told = element.value("http-equiv");
        assert!(told.is_none_or(|told| told == "Content-Security-Policy"));
    }
    for href in all.iter().filter_map(|element| element.value("href")) {
        let end = href.strip_prefix('#');
        assert!(end.is_some_and(|end| anchors.contains(end)), "{href}");
    }
}

#[test]
fn a_page_runs_nothing_asks_for_nothing_and_leads_nowhere() {
    for report in every_report() {
        let page = page(&report);
        assert_harmless(&page);
        assert_self_contained(&parsed(&page));
    }
}

#[test]
fn the_policy_of_a_page_allows_its_own_style_sheet_and_nothing_else() {
    let dom = parsed(&page(&report(case_b())));
    let all = elements(&dom.document);
    let policy = all.iter().position(|one| one.value("http-equiv").is_some());
    let style = all.iter().position(|one| one.name == "style");
    let (policy, style) = policy.zip(style).unwrap();
    // A policy applies only to elements after it.
    assert!(policy < style);
    let digest = Sha256::digest(text_of(&all[style].node));
    let said = all[policy].value("content").unwrap();
    let (before, rest) = said.split_once("'sha256-").unwrap();
    let (base64, after) = rest.split_once('\'').unwrap();
    assert_eq!(before, "default-src 'none'; style-src ");
    assert_eq!(after, "; base-uri 'none'; form-action 'none'");
    assert_eq!(decoded(base64), digest.as_slice());
}

/// Decodes base64 without padding.
fn decoded(text: &str) -> Vec<u8> {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.chars().filter_map(|c| alphabet.find(c));
    let bits: String = digits.map(|digit| format!("{digit:06b}")).collect();
    let whole = bits.as_bytes().chunks_exact(8);
    let byte = |bits: &[u8]| u8::from_str_radix(std::str::from_utf8(bits).unwrap(), 2).unwrap();
    whole.map(byte).collect()
}

#[test]
fn the_verdict_is_the_first_thing_on_the_page_and_every_check_has_an_anchor() {
    for report in every_report() {
        let dom = parsed(&page(&report));
        let all = elements(&dom.document);
        let heading = all.iter().find(|one| one.name == "h1").unwrap();
        let line = human(&report).lines().next().unwrap().to_owned();
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let shown = text_of(&heading.node);
        let shown = shown.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        assert_eq!(words(shown), words(&line));
        let anchors: BTreeSet<_> = all.iter().filter_map(|one| one.value("id")).collect();
        for finding in &report.checks {
            let anchor = format!("check-{}", finding.id);
            assert!(anchors.contains(anchor.as_str()), "{anchor}");
        }
    }
}

#[test]
fn markup_of_the_client_is_text() {
    for markup in MARKUP {
        assert_is_text(markup);
    }
}

/// Asserts that client text changes only the text of a page, and that the page shows it.
#[track_caller]
fn assert_is_text(text: &str) {
    let reports = |text: &str| {
        let mut reports = [
            report(with_text_everywhere(text)),
            audit_of(with_text_everywhere(text)),
            drifted(text),
        ];
        for report in &mut reports {
            report.client.program = text.to_owned();
            report.host.kernel = text.to_owned();
            report.not_proved.push(text.to_owned());
        }
        reports
    };
    static TAME: OnceLock<[Vec<String>; 3]> = OnceLock::new();
    let of_tame = || reports("tame").map(|report| skeleton(&parsed(&page(&report))));
    let pages = reports(text).into_iter().zip(TAME.get_or_init(of_tame));
    for ((hostile, tame), least) in pages.zip([12, 12, 7]) {
        let page = page(&hostile);
        assert_harmless(&page);
        let dom = parsed(&page);
        assert_self_contained(&dom);
        assert_eq!(&skeleton(&dom), tame, "{text}");
        let shown = visible(text);
        let codes = elements(&dom.document).into_iter();
        let codes = codes.filter(|one| one.name == "code");
        let equal = codes.filter(|one| text_of(&one.node) == shown).count();
        assert!(equal >= least, "{equal} times {shown}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_text_on_the_page(
        text in "(\\PC|\\pC|::|##|<|>|&|\"|'|=|/|</[a-z]{1,6}>|<[a-z]{1,6} |on[a-z]{4}=|&#[0-9]{2};|&[a-z]{2,4};|<!--|-->|\\]\\]>){1,40}"
    ) {
        assert_is_text(&text);
    }
}

#[test]
fn no_prompt_stands_on_a_page() {
    let mut run = case_b();
    let shell = started(&["sh", "-c", "agent-cli --prompt='Say something.'"]);
    run.evidence.processes.push(shell);
    let page = page(&report(run));
    assert!(!page.contains("Say something") && !page.contains("You are synthetic"));
}

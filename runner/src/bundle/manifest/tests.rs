use super::*;
use crate::schema::tests::validator;

fn run() -> Run {
    let sha256 = "0".repeat(64);
    Run {
        runner: Runner {
            version: "0.1.0".into(),
            sha256: sha256.clone(),
        },
        case: Case {
            name: "case-b".into(),
            sha256: sha256.clone(),
        },
        client: Client { sha256 },
        verdict: "passed".into(),
        tier: "namespace".into(),
        started_at: "2026-01-01T00:00:00.000Z".into(),
    }
}

fn listed(path: &str) -> Listed {
    Listed {
        path: path.into(),
        bytes: 0,
        sha256: "0".repeat(64),
        original: None,
    }
}

fn of(paths: &[&str]) -> Manifest {
    let files = paths.iter().map(|path| listed(path)).collect();
    Manifest::new(run(), files, Vec::new())
}

/// What is said of a document that is refused.
#[track_caller]
fn refused(document: &[u8]) -> String {
    Manifest::parse(document).unwrap_err().to_string()
}

#[test]
fn what_is_written_is_sorted_reads_back_and_fits_its_schema() {
    let mut manifest = of(&["report.json", "home/b", "home/a"]);
    manifest.files[0].original = Some(Original {
        root: "home".into(),
        path: "a".into(),
        mode: "0600".into(),
    });
    manifest.not_copied.push(NotCopied {
        root: Source::Tmp,
        path: "link\u{202e}".into(),
        kind: Some(Kind::Symlink),
        target: Some("/etc/passwd".into()),
        reason: "only regular files are copied".into(),
    });
    let document = manifest.document().unwrap();
    assert!(document.is_ascii(), "nothing in it turns a terminal's text");
    assert_eq!(Manifest::parse(&document).unwrap(), manifest);
    let paths: Vec<_> = manifest.files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["home/a", "home/b", "report.json"]);
    let value = serde_json::from_slice(&document).unwrap();
    assert!(validator(&schema()).is_valid(&value));
}

#[test]
fn a_path_that_leads_elsewhere_is_refused() {
    for (path, told) in [
        ("/etc/passwd", "is absolute"),
        ("", "is absolute"),
        ("home/../../x", "has a `.` or `..` in it"),
        ("..", "has a `.` or `..` in it"),
        ("./report.json", "has a `.` or `..` in it"),
        ("home//x", "has an empty name in it"),
        ("home/", "has an empty name in it"),
        ("home/\0", "has a NUL in it"),
        ("manifest.json", "is the manifest itself"),
        (&format!("home/{}", "x".repeat(256)), "over 255 bytes"),
        (&"x/".repeat(200), "has an empty name in it"),
        (&vec!["x"; 200].join("/"), "is too deep"),
    ] {
        let told = if path.is_empty() {
            "has an empty name in it"
        } else {
            told
        };
        let said = refused(&of(&[path]).document().unwrap());
        assert!(said.contains(told), "{path}: {said}");
    }
}

#[test]
fn a_path_that_stands_twice_is_refused() {
    for (paths, told) in [
        (["home/x", "home/x"], "stands there twice"),
        (["home", "home/x"], "leads through a file"),
    ] {
        let said = refused(&of(&paths).document().unwrap());
        assert!(said.contains(told), "{paths:?}: {said}");
        let mut other = of(&paths);
        other.files.reverse();
        Manifest::parse(&other.document().unwrap()).unwrap_err();
    }
}

#[test]
fn another_document_is_refused_by_what_it_is() {
    let document = String::from_utf8(of(&["report.json"]).document().unwrap()).unwrap();
    for (text, other, told) in [
        ("bundle/1", "bundle/2", "its schema is runner.bundle/2"),
        ("bundle/1", "\\u001b[2J", r"its schema is runner.\u{1b}[2J"),
        ("\"files\"", "\"fiels\"", "it is no JSON of this form"),
        (
            "\"bytes\": 0",
            "\"bytes\": -1",
            "it is no JSON of this form",
        ),
        (
            "\"verdict\": \"passed\"",
            "\"verdict\": \"passed\", \"verdict\": \"failed\"",
            "it is no JSON of this form",
        ),
    ] {
        assert!(document.contains(text), "{text}");
        let said = refused(document.replace(text, other).as_bytes());
        assert!(said.contains(told), "{other}: {said}");
    }
    let mut upper = of(&["report.json"]);
    upper.files[0].sha256 = "A".repeat(64);
    assert!(refused(&upper.document().unwrap()).contains("64 lower-case hex digits"));
    refused(b"");
    refused(&b"[".repeat(100_000));
}

#[test]
fn keys_of_a_later_version_are_ignored() {
    let document = String::from_utf8(of(&["x"]).document().unwrap()).unwrap();
    let later = document.replace("\"run\"", "\"later\": {}, \"run\"");
    Manifest::parse(later.as_bytes()).unwrap();
}

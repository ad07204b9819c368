use super::*;

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

/// Returns the message of a rejected document.
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
    assert!(
        jsonschema::draft202012::new(schema().as_value())
            .unwrap()
            .is_valid(&value)
    );
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
        (["home/x", "home/x"], "appears twice"),
        (["home", "home/x"], "leads through a file"),
    ] {
        let said = refused(&of(&paths).document().unwrap());
        assert!(said.contains(told), "{paths:?}: {said}");
    }
    // Names that sort between a file and a path below it.
    let said = refused(&of(&["a", "a!", "a!b", "a-", "a/b"]).document().unwrap());
    assert!(
        said.contains("the path a/b, which leads through a file"),
        "{said}"
    );
    for apart in [["a", "a!", "aa/a"], ["a-/a", "a/b", "a0"]] {
        Manifest::parse(&of(&apart).document().unwrap()).unwrap();
    }
}

#[test]
fn a_list_out_of_its_order_is_refused() {
    let mut manifest = of(&["a", "b", "c"]);
    manifest.files.swap(1, 2);
    let said = refused(&manifest.document().unwrap());
    assert!(said.contains("the path b, which is out of order"), "{said}");
}

#[test]
fn a_list_is_read_up_to_its_bound_and_no_further() {
    let read = |most, list: &str| {
        let bounded = Bounded::<u8>::of(most);
        bounded.deserialize(&mut serde_json::Deserializer::from_str(list))
    };
    assert_eq!(read(3, "[1, 2, 3]").unwrap(), [1, 2, 3]);
    let said = read(2, "[1, 2, 3, {").unwrap_err().to_string();
    let told = "a list of over 2 entries, which no run writes";
    assert!(said.starts_with(told), "{said}");
    // A manifest of a run reaches its limit on bytes before the limit on entries.
    let mut shortest = listed("a");
    shortest.bytes = 1;
    let not_copied = NotCopied {
        root: Source::Tmp,
        path: "a".into(),
        kind: Some(Kind::File),
        target: None,
        reason: "x".into(),
    };
    let length = |files, not_copied| {
        let manifest = Manifest::new(run(), files, not_copied);
        manifest.document().unwrap().len() as u64
    };
    let none = length(Vec::new(), Vec::new());
    for one in [
        length(vec![shortest], Vec::new()),
        length(Vec::new(), vec![not_copied]),
    ] {
        assert!((one - none) * MAX_ENTRIES as u64 > MAX_BYTES, "{one}");
    }
}

/// Returns the directory of these files as a tree of names.
fn tree(directory: Directory<'_>) -> String {
    let nodes = directory.nodes().map(|(name, node)| match node {
        Node::File(_) => name.to_owned(),
        Node::Directory(below) => format!("{name}({})", tree(below)),
    });
    nodes.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_lies_in_a_directory_is_read_off_the_sorted_list() {
    let manifest = of(&["a-/b", "a.c", "a/b", "a/b-", "a/c/d", "a/c/e", "a0", "b"]);
    assert_eq!(tree(manifest.tree()), "a-(b) a.c a(b b- c(d e)) a0 b");
    let found = |directory: Directory<'_>, name| match directory.get(name) {
        None => "nothing".to_owned(),
        Some(Node::File(file)) => file.path.clone(),
        Some(Node::Directory(below)) => tree(below),
    };
    for (name, expected) in [
        ("a", "b b- c(d e)"),
        ("a-", "b"),
        ("a.c", "a.c"),
        ("b", "b"),
        ("", "nothing"),
        ("c", "nothing"),
        ("a.", "nothing"),
    ] {
        assert_eq!(found(manifest.tree(), name), expected, "{name}");
    }
    let Some(Node::Directory(below)) = manifest.tree().get("a") else {
        panic!("no directory");
    };
    assert_eq!(found(below, "c"), "d e");
    assert_eq!(found(below, "b"), "a/b");
    assert_eq!(below.files().len(), 4);
}

#[test]
fn another_document_is_refused_by_what_it_is() {
    let document = String::from_utf8(of(&["report.json"]).document().unwrap()).unwrap();
    for (text, other, told) in [
        ("bundle/1", "bundle/2", "found runner.bundle/2"),
        ("bundle/1", "\\u001b[2J", r"found runner.\u{1b}[2J"),
        (
            "\"files\"",
            "\"fiels\"",
            "cannot parse it as JSON of this form",
        ),
        (
            "\"bytes\": 0",
            "\"bytes\": -1",
            "cannot parse it as JSON of this form",
        ),
        (
            "\"verdict\": \"passed\"",
            "\"verdict\": \"passed\", \"verdict\": \"failed\"",
            "cannot parse it as JSON of this form",
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

//! Tests of files that are written whole, and of files that are not replaced.

use std::os::unix::fs::symlink;

use super::*;

fn target(path: &Path) -> ReportTarget {
    ReportTarget {
        format: Format::Json,
        destination: Destination::File(path.to_path_buf()),
    }
}

#[test]
fn a_file_is_replaced_whole_and_nothing_lies_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    fs::write(&path, "old").unwrap();
    let outputs = open(&[target(&path)], &[]).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    for output in outputs {
        output.write(b"new").unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_link_stays_and_the_file_behind_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    fs::write(&file, "").unwrap();
    symlink(&file, &link).unwrap();
    open(&[target(&link)], &[])
        .unwrap()
        .pop()
        .unwrap()
        .write(b"new")
        .unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(&file).unwrap(), b"new");
    let twice = open(&[target(&link), target(&file)], &[]).unwrap_err();
    assert!(matches!(twice, OutputError::Twice { .. }));
}

#[test]
fn a_directory_or_a_link_that_is_swapped_during_the_run_leads_no_report_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("reports")).unwrap();
    fs::create_dir(at("victims")).unwrap();
    fs::write(at("victims/one"), "precious").unwrap();
    fs::write(at("victims/two"), "precious").unwrap();
    symlink(at("reports/one"), at("link")).unwrap();
    fs::write(at("reports/one"), "").unwrap();
    let outputs = open(&[target(&at("link")), target(&at("reports/two"))], &[]).unwrap();
    let files: Vec<_> = outputs.iter().filter_map(Output::file).collect();
    let reports = at("reports").canonicalize().unwrap();
    assert_eq!(files, [reports.join("one"), reports.join("two")]);
    fs::rename(at("reports"), at("moved")).unwrap();
    symlink(at("victims"), at("reports")).unwrap();
    fs::remove_file(at("moved/one")).unwrap();
    symlink(at("victims/one"), at("moved/one")).unwrap();
    for output in outputs {
        output.write(b"new").unwrap();
    }
    for name in ["one", "two"] {
        assert_eq!(fs::read(at("victims").join(name)).unwrap(), b"precious");
        assert_eq!(fs::read(at("moved").join(name)).unwrap(), b"new");
        assert!(!at("moved").join(name).is_symlink());
    }
    assert_eq!(fs::read_dir(at("moved")).unwrap().count(), 2);
}

#[test]
fn a_report_that_cannot_take_its_place_leaves_nothing_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let output = open(&[target(&path)], &[]).unwrap().pop().unwrap();
    fs::create_dir(&path).unwrap();
    let WriteError::Report { source, .. } = output.write(b"new").unwrap_err() else {
        panic!("another error");
    };
    assert_eq!(source.raw_os_error(), Some(libc::EISDIR));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_report_replaces_no_file_that_the_run_reads_by_whatever_name() {
    let directory = tempfile::tempdir().unwrap();
    let [file, link, hard, other] =
        ["file", "link", "hard", "other"].map(|name| directory.path().join(name));
    fs::write(&file, "client").unwrap();
    fs::write(&other, "").unwrap();
    symlink(&file, &link).unwrap();
    fs::hard_link(&file, &hard).unwrap();
    let inputs = [Input {
        what: "the client",
        path: &file,
    }];
    for path in [&file, &link, &hard] {
        let error = open(&[target(path)], &inputs).unwrap_err();
        assert!(
            matches!(error, OutputError::Replaces { .. }),
            "{path:?}: {error}"
        );
    }
    open(&[target(&other)], &inputs).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"client");
}

#[test]
fn a_device_is_written_as_it_is() {
    open(&[target(Path::new("/dev/null"))], &[])
        .unwrap()
        .pop()
        .unwrap()
        .write(b"x")
        .unwrap();
    assert!(!Path::new("/dev/null").is_file());
}

#[test]
fn what_cannot_be_written_is_known_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let absent = directory.path().join("absent/report.json");
    for path in [absent.as_path(), directory.path()] {
        let error = open(&[target(path)], &[]).unwrap_err();
        assert!(matches!(error, OutputError::Open { .. }), "{error}");
    }
}

#[test]
fn a_report_keeps_the_permissions_of_the_file_that_it_replaces() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let output = open(&[target(&path)], &[]).unwrap().pop().unwrap();
    output.write(b"new").unwrap();
    let found = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(found & 0o7777, 0o600);
}

//! The order of places by variable and right, and what folders hold.

use super::*;
use std::{collections::BTreeMap, ffi::OsString};

fn surroundings(variables: &[(&'static str, &str)]) -> Surroundings {
    Surroundings {
        elevated: false,
        user: own_user(),
        variables: variables.iter().map(|(name, value)| (*name, OsString::from(value))).collect(),
        program: Some("/opt/app/bin/app".into()),
        system: vec!["/usr/lib/wharf/plugins".into()],
    }
}

fn own_user() -> u32 {
    Surroundings::of_process().user
}

fn places(variables: &[(&'static str, &str)]) -> Vec<Place> {
    Search::default().places_in(&surroundings(variables))
}

fn named(variable: &str) -> Vec<PathBuf> {
    let folder = |place| match place {
        Place::Named(path) => Some(path),
        _ => None,
    };
    places(&[(PATH, variable)]).into_iter().filter_map(folder).collect()
}

fn files(variable: &str) -> Vec<PathBuf> {
    let file = |place| match place {
        Place::File(path) => Some(path),
        _ => None,
    };
    places(&[(FILES, variable)]).into_iter().filter_map(file).collect()
}

fn user(variables: &[(&'static str, &str)]) -> Option<PathBuf> {
    places(variables).into_iter().find_map(|place| match place {
        Place::User(path) => Some(path),
        _ => None,
    })
}

const SYSTEM: &str = "/usr/lib/wharf/plugins";

#[test]
fn all_places_come_in_their_order() {
    let search = Search { files: vec!["/f.so".into()], folders: vec!["/d".into()], ..Search::default() };
    let all = search.places_in(&surroundings(&[(FILES, "/vf.so"), (PATH, "/vd"), ("HOME", "/users/me")]));
    let wanted = [
        Place::File("/f.so".into()),
        Place::File("/vf.so".into()),
        Place::Named("/d".into()),
        Place::Named("/vd".into()),
        Place::Beside("/opt/app/bin/plugins".into()),
        Place::User("/users/me/.local/share/wharf/plugins".into()),
        Place::System(SYSTEM.into()),
    ];
    assert_eq!(all, wanted);
}

#[test]
fn without_variables_there_are_the_usual_folders() {
    assert_eq!(places(&[]), [Place::Beside("/opt/app/bin/plugins".into()), Place::System(SYSTEM.into())]);
}

#[test]
fn an_empty_path_variable_is_as_good_as_none() {
    assert!(named("").is_empty());
}

#[test]
fn empty_entries_of_the_path_never_mean_the_working_folder() {
    assert_eq!(named("::/a::"), [PathBuf::from("/a")]);
}

#[test]
fn several_folders_of_the_path_come_in_its_order() {
    assert_eq!(named("/b:/a"), [PathBuf::from("/b"), PathBuf::from("/a")]);
}

#[test]
fn a_folder_that_is_named_twice_is_looked_at_twice_and_its_files_are_duplicates() {
    assert_eq!(named("/a:/a").len(), 2);
}

#[test]
fn a_slash_at_the_end_of_a_folder_changes_nothing() {
    assert_eq!(named("/a/"), [Path::new("/a")]);
}

#[test]
fn a_folder_with_letters_of_all_kinds_is_taken() {
    assert_eq!(named("/ä b/日本"), [PathBuf::from("/ä b/日本")]);
}

#[test]
fn a_very_long_folder_is_only_missing() {
    let long = format!("/{}", "x".repeat(100_000));
    assert_eq!(folder(&named(&long)[0]).0, Vec::<PathBuf>::new());
}

#[test]
fn an_empty_files_variable_is_as_good_as_none() {
    assert!(files("").is_empty());
}

#[test]
fn several_files_come_in_their_order() {
    assert_eq!(files("/b.so::/a.so"), [PathBuf::from("/b.so"), PathBuf::from("/a.so")]);
}

#[test]
fn the_users_folder_is_that_of_xdg() {
    let all = [("XDG_DATA_HOME", "/data"), ("HOME", "/users/me")];
    assert_eq!(user(&all), Some("/data/wharf/plugins".into()));
}

#[test]
fn an_empty_xdg_folder_leaves_the_one_of_home() {
    let all = [("XDG_DATA_HOME", ""), ("HOME", "/users/me")];
    assert_eq!(user(&all), Some("/users/me/.local/share/wharf/plugins".into()));
}

#[test]
fn a_relative_xdg_folder_is_not_followed() {
    let all = [("XDG_DATA_HOME", "data"), ("HOME", "/users/me")];
    assert_eq!(user(&all), Some("/users/me/.local/share/wharf/plugins".into()));
}

#[test]
fn a_relative_home_is_not_followed() {
    assert_eq!(user(&[("HOME", "me")]), None);
    assert_eq!(user(&[("HOME", "")]), None);
}

#[test]
fn without_a_program_nothing_is_beside_it() {
    let alone = Surroundings { program: None, ..surroundings(&[]) };
    assert_eq!(Search::default().places_in(&alone), [Place::System(SYSTEM.into())]);
}

#[test]
fn only_what_is_named_is_looked_at_if_so_told() {
    let search = Search { folders: vec!["/d".into()], only_named: true, ..Search::default() };
    let all = search.places_in(&surroundings(&[(FILES, "/f"), (PATH, "/p"), ("HOME", "/users/me")]));
    assert_eq!(all, [Place::Named("/d".into())]);
}

fn elevated(variables: &[(&'static str, &str)]) -> Surroundings {
    Surroundings { elevated: true, ..surroundings(variables) }
}

fn only_system(variables: &[(&'static str, &str)]) {
    assert_eq!(Search::default().places_in(&elevated(variables)), [Place::System(SYSTEM.into())]);
}

#[test]
fn elevated_the_variable_of_files_is_not_followed() {
    only_system(&[(FILES, "/f.so")]);
}

#[test]
fn elevated_the_variable_of_folders_is_not_followed() {
    only_system(&[(PATH, "/d")]);
}

#[test]
fn elevated_the_folder_of_xdg_is_not_followed() {
    only_system(&[("XDG_DATA_HOME", "/data")]);
}

#[test]
fn elevated_the_home_is_not_followed() {
    only_system(&[("HOME", "/users/me")]);
}

#[test]
fn elevated_nothing_beside_the_program_is_looked_at() {
    only_system(&[]);
}

#[test]
fn elevated_no_option_names_a_place() {
    let search = Search { files: vec!["/f.so".into()], folders: vec!["/d".into()], ..Search::default() };
    assert_eq!(search.places_in(&elevated(&[])), [Place::System(SYSTEM.into())]);
}

#[test]
fn elevated_nobody_else_is_trusted_whatever_is_allowed() {
    let search = Search { allow_unsafe: true, ..Search::default() };
    assert!(!search.trust(&elevated(&[(ALLOW_UNSAFE, "1")])).anybody);
}

#[test]
fn unsafe_plugins_are_allowed_by_the_variable_one_only() {
    let trust = |value| Search::default().trust(&surroundings(&[(ALLOW_UNSAFE, value)])).anybody;
    assert!(trust("1"));
    for value in ["", "0", "true", "11", " 1"] {
        assert!(!trust(value), "{value}");
    }
}

#[test]
fn unsafe_plugins_are_allowed_by_the_program() {
    let search = Search { allow_unsafe: true, only_named: true, ..Search::default() };
    assert!(search.trust(&surroundings(&[])).anybody);
}

#[test]
fn only_what_is_named_allows_no_unsafe_plugins_by_variable() {
    let search = Search { only_named: true, ..Search::default() };
    assert!(!search.trust(&surroundings(&[(ALLOW_UNSAFE, "1")])).anybody);
}

fn look(place: Place, trust: Trust) -> (Vec<Wanted>, Report) {
    let mut report = Report::default();
    (Search::look(&place, trust, &mut report), report)
}

fn trusting() -> Trust {
    Trust { user: own_user(), anybody: false }
}

fn library(name: &str) -> String {
    format!("{name}.{}", env::consts::DLL_EXTENSION)
}

fn manifest_of(path: &str) -> String {
    format!(r#"{{"file_format_version":"1","plugin":{{"id":"x","path":"{path}","abi":"1"}}}}"#)
}

#[test]
fn a_missing_folder_is_a_line_and_no_candidate() {
    let (wanted, report) = look(Place::Named("/nonexistent".into()), trusting());
    assert!(wanted.is_empty() && report.candidates.is_empty());
    assert_eq!(report.searched[0].1, Found::Missing);
}

#[test]
fn a_file_in_place_of_a_folder_cannot_be_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (_, report) = look(Place::Named(file.path().into()), trusting());
    assert_eq!(report.searched[0].1, Found::Unreadable);
}

#[test]
fn a_named_file_that_is_missing_is_a_candidate() {
    let (_, report) = look(Place::File("/nonexistent.so".into()), trusting());
    assert!(matches!(report.candidates[0].fate, Fate::Rejected { class: "not_found", .. }));
}

#[test]
fn a_folder_gives_its_libraries_by_name_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for name in [library("b"), library("a"), "readme.txt".into(), "libc.so.6".into(), "x".into()] {
        fs::write(folder.path().join(name), b"").unwrap();
    }
    let (wanted, report) = look(Place::Named(folder.path().into()), trusting());
    let names: Vec<_> = wanted.iter().map(|w| w.file.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, [OsString::from(library("a")), library("b").into()]);
    assert_eq!(report.searched[0].1, Found::Candidates(2));
}

#[test]
fn a_library_that_a_manifest_names_is_a_candidate_through_it_only() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(library("a")), b"").unwrap();
    fs::write(folder.path().join("z.json"), manifest_of(&library("a"))).unwrap();
    let (wanted, _) = look(Place::User(folder.path().into()), trusting());
    assert_eq!(wanted.len(), 1);
    assert!(wanted[0].manifest.is_some());
}

#[test]
fn manifests_come_before_libraries() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(library("a")), b"").unwrap();
    fs::write(folder.path().join("z.json"), manifest_of("elsewhere.so")).unwrap();
    let (wanted, _) = look(Place::System(folder.path().into()), trusting());
    assert!(wanted[0].manifest.is_some() && wanted[1].manifest.is_none());
}

#[test]
fn a_bad_manifest_is_a_line_and_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(library("a")), b"").unwrap();
    fs::write(folder.path().join("bad.json"), "{").unwrap();
    let (wanted, report) = look(Place::Named(folder.path().into()), trusting());
    assert_eq!(wanted.len(), 1);
    assert!(matches!(report.candidates[0].fate, Fate::Rejected { class: "bad_manifest", .. }));
}

#[test]
fn a_manifest_can_be_named_as_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json");
    fs::write(&file, manifest_of("x.so")).unwrap();
    let (wanted, _) = look(Place::File(file), trusting());
    assert_eq!(wanted[0].file, folder.path().join("x.so"));
}

#[test]
#[cfg(unix)]
fn a_manifest_that_everybody_writes_is_refused_or_told() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json");
    fs::write(&file, manifest_of("x.so")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let (wanted, report) = look(Place::Named(folder.path().into()), trusting());
    assert!(wanted.is_empty());
    assert!(matches!(report.candidates[0].fate, Fate::Rejected { class: "unsafe", .. }));
    let (wanted, report) = look(Place::Named(folder.path().into()), Trust { anybody: true, ..trusting() });
    assert_eq!((wanted.len(), report.notes.len()), (1, 1));
}

#[test]
#[cfg(unix)]
fn a_link_of_a_manifest_that_leads_nowhere_is_a_line() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("x.json")).unwrap();
    let (_, report) = look(Place::Named(folder.path().into()), trusting());
    assert!(matches!(report.candidates[0].fate, Fate::Rejected { class: "not_found", .. }));
}

#[test]
fn nothing_else_of_the_environment_is_read() {
    let process = Surroundings::of_process();
    let known = [FILES, PATH, ALLOW_UNSAFE, "WHARF_PLUGINS_SELECT", "WHARF_PLUGINS_DISABLE", "WHARF_REQUIRE"];
    let other: BTreeMap<_, _> =
        process.variables.into_iter().filter(|(name, _)| !known.contains(name)).collect();
    assert!(other.keys().all(|name| ["HOME", "XDG_DATA_HOME"].contains(name)));
}

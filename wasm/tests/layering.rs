//! A layer names only layers below it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

/// The order of `lib.rs`: each may name itself and what stands before it.
const LAYERS: [&str; 10] =
    ["collections", "error", "env", "store", "batch", "format", "expr", "table", "lsm", "bindings"];

/// Names that the order allows and the house does not.
const FORBIDDEN: [(&str, &str); 6] =
    [("store", "batch"), ("batch", "store"), ("batch", "env"), ("format", "env"), ("expr", "store"), ("expr", "env")];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn imports_go_down_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut breaches = Vec::new();
    for file in &files {
        let relative = file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        let layer = relative.split(['/', '.']).next().unwrap().to_owned();
        let Some(own) = LAYERS.iter().position(|name| *name == layer) else { continue };
        let text = std::fs::read_to_string(file).unwrap();
        for used in text.split("crate::").skip(1) {
            let name: String = used.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let io_allowed = relative.ends_with("file/reader.rs") || relative.ends_with("file/writer.rs");
            let forbidden = FORBIDDEN.contains(&(layer.as_str(), name.as_str()))
                || (layer == "format" && name == "store" && !io_allowed);
            if forbidden || LAYERS.iter().position(|other| *other == name).is_some_and(|other| other > own) {
                breaches.push(format!("{relative}: {layer} -> {name}"));
            }
        }
    }
    assert!(files.len() > 20, "the sources were not found");
    assert_eq!(breaches, Vec::<String>::new());
}

#[test]
fn javascript_stays_at_the_edge() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let breaches: Vec<_> = files
        .iter()
        .map(|file| file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/"))
        .filter(|file| !file.starts_with("bindings/") && file != "store/host.rs")
        .filter(|file| {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            ["wasm_bindgen", "js_sys", "web_sys"].iter().any(|name| text.contains(name))
        })
        .collect();
    assert_eq!(breaches, Vec::<String>::new());
}

//! The store that JavaScript provides: `Store` over an object of `src/store`, the same contract method by method.
//!
//! Bytes are copied once in each direction. Numbers cross as JavaScript numbers: sizes, versions and times stay below 2^53.
//! A `LanceError` comes back as the `Error` of its code; anything else that is thrown is `Storage`.

use std::ops::Range;
use std::rc::Rc;

use async_trait::async_trait;
use bytes::Bytes;
use js_sys::{Array, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::error::{Error, Result};
use crate::store::{
    CommitOutcome, CommitRequest, DeleteOutcome, DirId, LeaseId, LeaseKind, LeaseOutcome, LeaseRequest, ListOptions,
    Listing, LiveLease, ObjectMeta, ObjectWriter, Path, Pins, PublishOutcome, RefMode, RefOutcome, RefRequest,
    RemoveOutcome, RemoveRequest, RenameOutcome, Store, TableEntry, Token, Turn,
};

#[wasm_bindgen]
extern "C" {
    /// `Store` of `src/store/store.ts`.
    pub type JsStore;

    #[wasm_bindgen(method, structural, catch)]
    fn tables(this: &JsStore) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn lookup(this: &JsStore, name: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch, js_name = createDir)]
    fn create_dir(this: &JsStore, now_ms: f64, expires_ms: f64) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch, js_name = publishDir)]
    fn publish_dir(this: &JsStore, name: &str, id: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch, js_name = renameDir)]
    fn rename_dir(this: &JsStore, id: &str, from: &str, to: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch, js_name = dropDir)]
    fn drop_dir(this: &JsStore, id: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn sweep(this: &JsStore, now_ms: f64) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn put(this: &JsStore, dir: &str, path: &str, bytes: Uint8Array) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch, js_name = putIfAbsent)]
    fn put_if_absent(this: &JsStore, dir: &str, path: &str, bytes: Uint8Array) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn writer(this: &JsStore, dir: &str, path: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn get(this: &JsStore, dir: &str, path: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch, js_name = getRanges)]
    fn get_ranges(this: &JsStore, dir: &str, path: &str, ranges: Array) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn head(this: &JsStore, dir: &str, path: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn list(this: &JsStore, dir: &str, prefix: &str, options: Object) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn delete(this: &JsStore, dir: &str, path: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn token(this: &JsStore, dir: &str, folder: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn commit(this: &JsStore, request: Object) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn lease(this: &JsStore, request: Object) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn renew(this: &JsStore, lease: &str, now_ms: f64, expires_ms: f64) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn release(this: &JsStore, lease: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn leases(this: &JsStore, dir: &str, now_ms: f64) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn pins(this: &JsStore, dir: &str) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch, js_name = putRef)]
    fn put_ref(this: &JsStore, request: Object) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn remove(this: &JsStore, request: Object) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn turn(this: &JsStore, dir: &str, wait_ms: f64) -> Result<Promise, JsValue>;

    type JsWriter;
    #[wasm_bindgen(method, structural, catch)]
    fn write(this: &JsWriter, bytes: Uint8Array) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn finish(this: &JsWriter) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, structural, catch)]
    fn abort(this: &JsWriter) -> Result<Promise, JsValue>;

    type JsTurn;
    #[wasm_bindgen(method, structural, catch, js_name = release)]
    fn give_up(this: &JsTurn) -> Result<(), JsValue>;
}

/// A store of JavaScript.
#[derive(Clone)]
pub struct HostStore {
    js: Rc<JsStore>,
}

impl HostStore {
    pub fn new(js: JsStore) -> HostStore {
        HostStore { js: Rc::new(js) }
    }
}

#[async_trait(?Send)]
impl Store for HostStore {
    async fn tables(&self) -> Result<Vec<TableEntry>> {
        let entries = answer(self.js.tables()).await?;
        let entry = |js: &JsValue| Ok(TableEntry { name: text(js, "name")?, id: DirId(text(js, "id")?) });
        items(&entries)?.iter().map(entry).collect()
    }

    async fn lookup(&self, name: &str) -> Result<Option<DirId>> {
        Ok(answer(self.js.lookup(name)).await?.as_string().map(DirId))
    }

    async fn create_dir(&self, now_ms: u64, expires_ms: u64) -> Result<DirId> {
        Ok(DirId(to_text(&answer(self.js.create_dir(number(now_ms), number(expires_ms))).await?)?))
    }

    async fn publish_dir(&self, name: &str, id: &DirId) -> Result<PublishOutcome> {
        match to_text(&answer(self.js.publish_dir(name, &id.0)).await?)?.as_str() {
            "published" => Ok(PublishOutcome::Published),
            "exists" => Ok(PublishOutcome::Exists),
            "gone" => Ok(PublishOutcome::Gone),
            other => Err(misshapen(other)),
        }
    }

    async fn rename_dir(&self, id: &DirId, from: &str, to: &str) -> Result<RenameOutcome> {
        match to_text(&answer(self.js.rename_dir(&id.0, from, to)).await?)?.as_str() {
            "renamed" => Ok(RenameOutcome::Renamed),
            "exists" => Ok(RenameOutcome::Exists),
            "gone" => Ok(RenameOutcome::Gone),
            other => Err(misshapen(other)),
        }
    }

    async fn drop_dir(&self, id: &DirId) -> Result<()> {
        answer(self.js.drop_dir(&id.0)).await.map(drop)
    }

    async fn sweep(&self, now_ms: u64) -> Result<()> {
        answer(self.js.sweep(number(now_ms))).await.map(drop)
    }

    async fn put(&self, dir: &DirId, path: &Path, bytes: Bytes) -> Result<()> {
        answer(self.js.put(&dir.0, path.as_str(), copied(&bytes))).await.map(drop)
    }

    async fn put_if_absent(&self, dir: &DirId, path: &Path, bytes: Bytes) -> Result<bool> {
        to_bool(&answer(self.js.put_if_absent(&dir.0, path.as_str(), copied(&bytes))).await?)
    }

    async fn writer(&self, dir: &DirId, path: &Path) -> Result<Box<dyn ObjectWriter>> {
        let writer = answer(self.js.writer(&dir.0, path.as_str())).await?;
        Ok(Box::new(HostWriter { js: writer.unchecked_into() }))
    }

    async fn get(&self, dir: &DirId, path: &Path) -> Result<Bytes> {
        to_bytes(&answer(self.js.get(&dir.0, path.as_str())).await?)
    }

    async fn get_ranges(&self, dir: &DirId, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let bounds: Array = ranges.iter().flat_map(|range| [range.start, range.end]).map(js_number).collect();
        let parts = answer(self.js.get_ranges(&dir.0, path.as_str(), bounds)).await?;
        let parts: Vec<Bytes> = items(&parts)?.iter().map(to_bytes).collect::<Result<_>>()?;
        let is_as_asked = parts.len() == ranges.len()
            && parts.iter().zip(ranges).all(|(part, range)| part.len() as u64 == range.end.saturating_sub(range.start));
        if !is_as_asked {
            return Err(storage(path.as_str(), "the store answered other ranges than were asked"));
        }
        Ok(parts)
    }

    async fn head(&self, dir: &DirId, path: &Path) -> Result<Option<ObjectMeta>> {
        let meta = answer(self.js.head(&dir.0, path.as_str())).await?;
        if meta.is_undefined() { Ok(None) } else { object_meta(&meta).map(Some) }
    }

    async fn list(&self, dir: &DirId, prefix: &Path, options: &ListOptions) -> Result<Listing> {
        let js = Object::new();
        if let Some(after) = &options.after {
            set(&js, "after", &after.as_str().into())?;
        }
        if options.shallow {
            set(&js, "shallow", &JsValue::TRUE)?;
        }
        if let Some(limit) = options.limit {
            set(&js, "limit", &limit.into())?;
        }
        let listing = answer(self.js.list(&dir.0, prefix.as_str(), js)).await?;
        let folder = |js: &JsValue| Path::parse(&to_text(js)?);
        Ok(Listing {
            objects: items(&field(&listing, "objects")?)?.iter().map(object_meta).collect::<Result<_>>()?,
            folders: items(&field(&listing, "folders")?)?.iter().map(folder).collect::<Result<_>>()?,
        })
    }

    async fn delete(&self, dir: &DirId, path: &Path) -> Result<DeleteOutcome> {
        match to_text(&answer(self.js.delete(&dir.0, path.as_str())).await?)?.as_str() {
            "deleted" => Ok(DeleteOutcome::Deleted),
            "busy" => Ok(DeleteOutcome::Busy),
            other => Err(misshapen(other)),
        }
    }

    async fn token(&self, dir: &DirId, folder: &Path) -> Result<Token> {
        Ok(Token(to_text(&answer(self.js.token(&dir.0, folder.as_str())).await?)?))
    }

    async fn commit(&self, request: CommitRequest) -> Result<CommitOutcome> {
        let js = Object::new();
        set(&js, "dir", &request.dir.0.as_str().into())?;
        let objects: Array = request.objects.iter().map(stored_object).collect::<Result<_>>()?;
        set(&js, "objects", &objects)?;
        set(&js, "publish", &stored_object(&request.publish)?)?;
        set(&js, "token", &request.token.0.as_str().into())?;
        set(&js, "requires", &js_paths(&request.requires))?;
        if let Some(version) = request.replaces {
            set(&js, "replaces", &js_number(version))?;
        }
        let outcome = answer(self.js.commit(js)).await?;
        match text(&outcome, "kind")?.as_str() {
            "committed" => Ok(CommitOutcome::Committed),
            "exists" => Ok(CommitOutcome::Exists),
            "moved" => Ok(CommitOutcome::Moved),
            "gone" => Ok(CommitOutcome::Gone),
            "missing" => Ok(CommitOutcome::Missing(Path::parse(&text(&outcome, "path")?)?)),
            other => Err(misshapen(other)),
        }
    }

    async fn lease(&self, request: LeaseRequest) -> Result<LeaseOutcome> {
        let js = Object::new();
        let kind = match request.kind {
            LeaseKind::Write => "write",
            LeaseKind::Scan => "scan",
            LeaseKind::Checkout => "checkout",
        };
        set(&js, "dir", &request.dir.0.as_str().into())?;
        set(&js, "kind", &kind.into())?;
        set(&js, "version", &js_number(request.version))?;
        set(&js, "manifest", &request.manifest.as_str().into())?;
        set(&js, "nowMs", &js_number(request.now_ms))?;
        set(&js, "expiresMs", &js_number(request.expires_ms))?;
        let outcome = answer(self.js.lease(js)).await?;
        match text(&outcome, "kind")?.as_str() {
            "taken" => Ok(LeaseOutcome::Taken {
                id: LeaseId(text(&outcome, "id")?),
                replaced: to_u64(&field(&outcome, "replaced")?)?,
            }),
            "gone" => Ok(LeaseOutcome::Gone),
            "missing" => Ok(LeaseOutcome::Missing),
            other => Err(misshapen(other)),
        }
    }

    async fn renew(&self, lease: &LeaseId, now_ms: u64, expires_ms: u64) -> Result<bool> {
        to_bool(&answer(self.js.renew(&lease.0, number(now_ms), number(expires_ms))).await?)
    }

    async fn release(&self, lease: &LeaseId) -> Result<()> {
        answer(self.js.release(&lease.0)).await.map(drop)
    }

    async fn leases(&self, dir: &DirId, now_ms: u64) -> Result<Vec<LiveLease>> {
        let leases = answer(self.js.leases(&dir.0, number(now_ms))).await?;
        items(&leases)?.iter().map(live_lease).collect()
    }

    async fn pins(&self, dir: &DirId) -> Result<Pins> {
        Ok(Pins(to_text(&answer(self.js.pins(&dir.0)).await?)?))
    }

    async fn put_ref(&self, request: RefRequest) -> Result<RefOutcome> {
        let js = Object::new();
        let mode = match request.mode {
            RefMode::Create => "create",
            RefMode::Replace => "replace",
        };
        set(&js, "dir", &request.dir.0.as_str().into())?;
        set(&js, "path", &request.path.as_str().into())?;
        set(&js, "bytes", &copied(&request.bytes))?;
        set(&js, "manifest", &request.manifest.as_str().into())?;
        set(&js, "mode", &mode.into())?;
        match to_text(&answer(self.js.put_ref(js)).await?)?.as_str() {
            "written" => Ok(RefOutcome::Written),
            "gone" => Ok(RefOutcome::Gone),
            "missing" => Ok(RefOutcome::Missing),
            "exists" => Ok(RefOutcome::Exists),
            "absent" => Ok(RefOutcome::Absent),
            other => Err(misshapen(other)),
        }
    }

    async fn remove(&self, request: RemoveRequest) -> Result<RemoveOutcome> {
        let js = Object::new();
        let (versions, manifests): (Vec<u64>, Vec<Path>) = request.manifests.into_iter().unzip();
        let versions: Array = versions.into_iter().map(js_number).collect();
        set(&js, "dir", &request.dir.0.as_str().into())?;
        set(&js, "versions", &versions)?;
        set(&js, "manifests", &js_paths(&manifests))?;
        set(&js, "files", &js_paths(&request.files))?;
        set(&js, "pins", &request.pins.0.as_str().into())?;
        if let Some((folder, token)) = &request.token {
            set(&js, "folder", &folder.as_str().into())?;
            set(&js, "token", &token.0.as_str().into())?;
        }
        set(&js, "needsNoWriter", &request.needs_no_writer.into())?;
        set(&js, "nowMs", &js_number(request.now_ms))?;
        let outcome = answer(self.js.remove(js)).await?;
        match text(&outcome, "kind")?.as_str() {
            "removed" => Ok(RemoveOutcome::Removed {
                manifests: to_u64(&field(&outcome, "manifests")?)?,
                bytes: to_u64(&field(&outcome, "bytes")?)?,
                busy: to_u64(&field(&outcome, "busy")?)?,
            }),
            "moved" => Ok(RemoveOutcome::Moved),
            "contended" => Ok(RemoveOutcome::Contended),
            "gone" => Ok(RemoveOutcome::Gone),
            other => Err(misshapen(other)),
        }
    }

    async fn turn(&self, dir: &DirId, wait_ms: u64) -> Result<Option<Box<dyn Turn>>> {
        let turn = answer(self.js.turn(&dir.0, number(wait_ms))).await?;
        if turn.is_undefined() {
            return Ok(None);
        }
        Ok(Some(Box::new(HostTurn { js: turn.unchecked_into() })))
    }
}

struct HostTurn {
    js: JsTurn,
}

impl Turn for HostTurn {}

impl Drop for HostTurn {
    fn drop(&mut self) {
        // A turn is for fairness only: one that cannot be given up costs others their bounded wait.
        let _ = self.js.give_up();
    }
}

struct HostWriter {
    js: JsWriter,
}

#[async_trait(?Send)]
impl ObjectWriter for HostWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        answer(self.js.write(copied(&bytes))).await.map(drop)
    }

    async fn finish(self: Box<Self>) -> Result<u64> {
        to_u64(&answer(self.js.finish()).await?)
    }

    async fn abort(self: Box<Self>) -> Result<()> {
        answer(self.js.abort()).await.map(drop)
    }
}

/// What a call's promise resolves to, or the error that it was rejected with.
async fn answer(called: Result<Promise, JsValue>) -> Result<JsValue> {
    let promise = called.map_err(|thrown| from_js(&thrown))?;
    JsFuture::from(promise).await.map_err(|thrown| from_js(&thrown))
}

/// The error of a thrown value.
fn from_js(thrown: &JsValue) -> Error {
    let string = |object: &JsValue, name: &str| Reflect::get(object, &name.into()).ok().and_then(|v| v.as_string());
    let message = string(thrown, "message").unwrap_or_else(|| format!("{thrown:?}"));
    let details = Reflect::get(thrown, &"details".into()).unwrap_or(JsValue::UNDEFINED);
    let detail = |name: &str| string(&details, name);
    let count = |name: &str| Reflect::get(&details, &name.into()).ok().and_then(|value| to_u64(&value).ok());
    let path = || detail("path").unwrap_or_default();
    // Messages get their frame again when they leave the engine.
    let inner = |before: &str, after: &str| -> String {
        let rest = message.strip_prefix(before).unwrap_or(&message);
        rest.strip_suffix(after).unwrap_or(rest).to_owned()
    };
    match string(thrown, "code").as_deref() {
        Some("INVALID_INPUT") => Error::InvalidInput { message: inner("invalid input, ", "") },
        Some("SCHEMA") => Error::Schema { message: inner("schema error: ", "") },
        Some("TABLE_NOT_FOUND") => {
            Error::TableNotFound { name: detail("name").unwrap_or_else(|| inner("Table '", "' was not found")) }
        }
        Some("TABLE_EXISTS") => {
            Error::TableExists { name: detail("name").unwrap_or_else(|| inner("Table '", "' already exists")) }
        }
        Some("NOT_FOUND") => Error::NotFound { what: inner("", " was not found") },
        Some("ALREADY_EXISTS") => Error::AlreadyExists { what: inner("", " already exists") },
        Some("NOT_SUPPORTED") => {
            Error::NotSupported { feature: detail("feature").unwrap_or_else(|| inner("not supported: ", "")) }
        }
        Some("CONTENTION") => Error::Contention { message },
        Some("UNAVAILABLE") => Error::Unavailable { reason: inner("storage is not available: ", "") },
        Some("OUTCOME_UNKNOWN") => Error::OutcomeUnknown { message },
        Some("TIMEOUT") => Error::Timeout { message },
        Some("ABORTED") => Error::Aborted,
        Some("CLOSED") => Error::Closed { what: inner("", " is closed") },
        Some("CORRUPT") => {
            Error::Corrupt { path: path(), offset: count("offset"), reason: detail("reason").unwrap_or(message) }
        }
        Some("QUOTA") => Error::Quota { needed_bytes: count("neededBytes") },
        Some("STORAGE") => Error::Storage { path: path(), source: detail("source").unwrap_or(message) },
        Some("INTERNAL") => Error::Internal { reason: inner("internal error: ", "") },
        _ => Error::Storage { path: path(), source: message },
    }
}

fn storage(path: &str, source: &str) -> Error {
    Error::Storage { path: path.to_owned(), source: source.to_owned() }
}

fn misshapen(found: &str) -> Error {
    storage("", &format!("the store answered {found:?}, which is none of its outcomes"))
}

fn copied(bytes: &Bytes) -> Uint8Array {
    Uint8Array::from(bytes.as_ref())
}

// Sizes, versions and times stay below 2^53, where every integer is exact.
fn number(value: u64) -> f64 {
    value as f64
}

fn js_number(value: u64) -> JsValue {
    JsValue::from_f64(number(value))
}

fn set(object: &Object, name: &str, value: &JsValue) -> Result<()> {
    Reflect::set(object, &name.into(), value).map(drop).map_err(|thrown| from_js(&thrown))
}

fn stored_object((path, bytes): &(Path, Bytes)) -> Result<JsValue> {
    let js = Object::new();
    set(&js, "path", &path.as_str().into())?;
    set(&js, "bytes", &copied(bytes))?;
    Ok(js.into())
}

fn object_meta(js: &JsValue) -> Result<ObjectMeta> {
    Ok(ObjectMeta {
        path: Path::parse(&text(js, "path")?)?,
        size_bytes: to_u64(&field(js, "sizeBytes")?)?,
        // Some file systems give fractions of a millisecond.
        modified_ms: to_u64(&field(js, "modifiedMs")?.as_f64().map(f64::floor).into())?,
    })
}

fn live_lease(js: &JsValue) -> Result<LiveLease> {
    let kind = match text(js, "kind")?.as_str() {
        "write" => LeaseKind::Write,
        "scan" => LeaseKind::Scan,
        "checkout" => LeaseKind::Checkout,
        other => return Err(misshapen(other)),
    };
    Ok(LiveLease { kind, version: to_u64(&field(js, "version")?)? })
}

fn js_paths(paths: &[Path]) -> Array {
    paths.iter().map(|path| JsValue::from_str(path.as_str())).collect()
}

fn field(object: &JsValue, name: &str) -> Result<JsValue> {
    Reflect::get(object, &name.into()).map_err(|_| misshapen(&format!("{object:?}")))
}

fn text(object: &JsValue, name: &str) -> Result<String> {
    to_text(&field(object, name)?)
}

fn to_text(value: &JsValue) -> Result<String> {
    value.as_string().ok_or_else(|| misshapen(&format!("{value:?}")))
}

fn to_bool(value: &JsValue) -> Result<bool> {
    value.as_bool().ok_or_else(|| misshapen(&format!("{value:?}")))
}

fn to_u64(value: &JsValue) -> Result<u64> {
    match value.as_f64() {
        Some(number) if number >= 0.0 && number.fract() == 0.0 && number <= 9_007_199_254_740_991.0 => {
            Ok(number as u64)
        }
        _ => Err(misshapen(&format!("{value:?}"))),
    }
}

fn to_bytes(value: &JsValue) -> Result<Bytes> {
    let array = value.dyn_ref::<Uint8Array>().ok_or_else(|| misshapen(&format!("{value:?}")))?;
    Ok(Bytes::from(array.to_vec()))
}

fn items(value: &JsValue) -> Result<Vec<JsValue>> {
    let array = value.dyn_ref::<Array>().ok_or_else(|| misshapen(&format!("{value:?}")))?;
    Ok(array.to_vec())
}

//! See `src/tags.ts` and `src/retention.ts`.

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;

use crate::bindings::options::{cleanup_options, exact, number, object, timestamp_ms};
use crate::bindings::table::Table;
use crate::bindings::tasks::promise;
use crate::store::LeaseKind;
use crate::table::{CleanupPreview, KeepReason, TagInfo};

#[wasm_bindgen]
impl Table {
    #[wasm_bindgen(unchecked_return_type = "Promise<{ name: string, version: number, manifestSize: number }[]>")]
    pub fn tags(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.tags().await.map(|tags| JsValue::from(tags.iter().map(tag).collect::<Array>())) })
    }

    #[wasm_bindgen(js_name = tagVersion, unchecked_return_type = "Promise<number>")]
    pub fn tag_version(&self, name: String) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.tag_version(&name).await.map(number) })
    }

    #[wasm_bindgen(js_name = createTag, unchecked_return_type = "Promise<void>")]
    pub fn create_tag(&self, name: String, version: f64) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.create_tag(&name, exact("version", version)?).await.map(|()| JsValue::UNDEFINED) })
    }

    #[wasm_bindgen(js_name = updateTag, unchecked_return_type = "Promise<void>")]
    pub fn update_tag(&self, name: String, version: f64) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.update_tag(&name, exact("version", version)?).await.map(|()| JsValue::UNDEFINED) })
    }

    #[wasm_bindgen(js_name = deleteTag, unchecked_return_type = "Promise<void>")]
    pub fn delete_tag(&self, name: String) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.delete_tag(&name).await.map(|()| JsValue::UNDEFINED) })
    }

    #[wasm_bindgen(js_name = checkoutTag, unchecked_return_type = "Promise<void>")]
    pub fn checkout_tag(&self, name: String) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.checkout_tag(&name).await.map(|()| JsValue::UNDEFINED) })
    }

    #[wasm_bindgen(
        js_name = previewCleanup,
        unchecked_return_type = "Promise<{ \
            kept: { version: number, timestampMs: number, reasons: { kind: string, name: string }[] }[], \
            removed: { version: number, timestampMs: number }[], \
            files: { path: string, sizeBytes: number }[] }>"
    )]
    pub fn preview_cleanup(&self, options: JsValue) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.preview_cleanup(&cleanup_options(&options)?).await.map(|plan| preview(&plan)) })
    }
}

fn tag(tag: &TagInfo) -> JsValue {
    let TagInfo { name, version, manifest_size, .. } = tag;
    let fields =
        [("name", name.as_str().into()), ("version", number(*version)), ("manifestSize", number(*manifest_size))];
    object(fields).into()
}

/// `WireCleanupPreview`: manifests are files, too.
fn preview(plan: &CleanupPreview) -> JsValue {
    let version = |version, timestamp_ns| [("version", number(version)), ("timestampMs", timestamp_ms(timestamp_ns))];
    let file =
        |path: &str, size_bytes: u64| JsValue::from(object([("path", path.into()), ("sizeBytes", number(size_bytes))]));
    let kept = plan.kept.iter().map(|kept| {
        let reasons: Array = kept.reasons.iter().map(reason).collect();
        let own = version(kept.version, kept.timestamp_ns);
        JsValue::from(object(own.into_iter().chain([("reasons", reasons.into())])))
    });
    let removed = plan.removed.iter().map(|gone| JsValue::from(object(version(gone.version, gone.timestamp_ns))));
    let manifests = plan.removed.iter().map(|gone| file(gone.path.as_str(), gone.size_bytes));
    let files = manifests.chain(plan.files.iter().map(|garbage| file(garbage.path.as_str(), garbage.size_bytes)));
    let fields = [
        ("kept", kept.collect::<Array>().into()),
        ("removed", removed.collect::<Array>().into()),
        ("files", files.collect::<Array>().into()),
    ];
    object(fields).into()
}

fn reason(reason: &KeepReason) -> JsValue {
    let (kind, name) = match reason {
        KeepReason::Latest => ("latest", ""),
        KeepReason::Age => ("age", ""),
        KeepReason::Tag(name) => ("tag", name.as_str()),
        KeepReason::Branch(name) => ("branch", name.as_str()),
        KeepReason::Lease(LeaseKind::Write) => ("lease", "write"),
        KeepReason::Lease(LeaseKind::Scan) => ("lease", "scan"),
        KeepReason::Lease(LeaseKind::Checkout) => ("lease", "checkout"),
    };
    object([("kind", kind.into()), ("name", name.into())]).into()
}

//! The next manifest: an operation applied to the manifest of the latest version. Pure.
//!
//! What an operation does not change is taken over as it is: schema, config, index section (its bitmaps may go on naming fragments that
//! are no longer there), base paths. Flags are recomputed from the content.

use bytes::Bytes;

use crate::collections::{SortedMap, SortedSet};
use crate::error::{Error, Result};
use crate::format::file::FileVersion;
use crate::format::proto::{IndexMetadata, WriterVersion};
use crate::format::table::feature;
use crate::format::table::{
    DataFile, Field, FieldId, Fragment, FragmentId, IndexEntry, IndexSection, Manifest, Operation, Schema, Transaction,
    UpdateMap, Version, of_children,
};
use crate::format::wal::spec;
use crate::table::lineage;

/// The name under which we sign manifests.
const LIBRARY: &str = "lancelet";

/// The first version of a table: the fragments of an overwrite of nothing.
pub(crate) fn first(
    schema: Schema,
    format: FileVersion,
    fragments: Vec<Fragment>,
    has_row_ids: bool,
    uuid: String,
    now_ns: u64,
) -> Result<Manifest> {
    let flags = if has_row_ids { feature::STABLE_ROW_IDS } else { 0 };
    let operation =
        Operation::Overwrite { fragments: fragments.clone(), schema: schema.clone(), config: SortedMap::new() };
    let mut manifest = Manifest {
        version: Version(1),
        schema,
        fragments: Vec::new(),
        max_fragment_id: None,
        timestamp_ns: Some(now_ns),
        reader_flags: flags,
        writer_flags: flags,
        next_row_id: 0,
        data_format: format.as_str().to_owned(),
        config: SortedMap::new(),
        table_metadata: SortedMap::new(),
        base_paths: Vec::new(),
        branch: None,
        writer: Some(writer()),
        transaction_file: String::new(),
        index_section: None,
        transaction: Some(Transaction { read_version: 0, uuid, operation }),
    };
    add_fragments(&mut manifest, fragments)?;
    set_flags(&mut manifest);
    Ok(manifest)
}

/// What an operation needs beside its transaction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Given<'a> {
    /// The version that a restore brings back.
    pub(crate) restored: Option<&'a Manifest>,
    /// The format of the data files after an overwrite.
    pub(crate) data_format: Option<FileVersion>,
}

/// The version after `previous`.
///
/// # Errors
/// `Internal` for an operation that this build does not write, or that names fragments and fields that are not there; `NotSupported` when
/// the fragment ids are used up, and for a restore that would take the stable row ids away.
pub(crate) fn next(previous: &Manifest, transaction: Transaction, given: Given<'_>, now_ns: u64) -> Result<Manifest> {
    let version = previous.version.0.checked_add(1).ok_or_else(|| Error::corrupt("the version number is used up"))?;
    // Clocks of several tabs and machines differ: versions are ordered in time whatever they say.
    let timestamp_ns = now_ns.max(previous.timestamp_ns.map_or(0, |before| before.saturating_add(1)));
    let mut manifest = Manifest {
        version: Version(version),
        timestamp_ns: Some(timestamp_ns),
        writer: Some(writer()),
        transaction_file: String::new(),
        transaction: None,
        ..previous.clone()
    };
    match &transaction.operation {
        Operation::Append { fragments } => add_fragments(&mut manifest, fragments.clone())?,
        Operation::Delete { updated, deleted, .. } => change_fragments(&mut manifest, updated, deleted)?,
        Operation::Update { removed, updated, new, .. } => {
            change_fragments(&mut manifest, updated, removed)?;
            add_fragments(&mut manifest, new.clone())?;
        }
        Operation::Overwrite { fragments, schema, config } => {
            manifest.schema = schema.clone();
            manifest.fragments.clear();
            manifest.index_section = None;
            manifest.config.extend(config.clone());
            if let Some(format) = given.data_format {
                manifest.data_format = format.as_str().to_owned();
            }
            add_fragments(&mut manifest, fragments.clone())?;
        }
        Operation::Rewrite { groups } => {
            for group in groups {
                let old: Vec<FragmentId> = group.old.iter().map(|fragment| fragment.id).collect();
                change_fragments(&mut manifest, &[], &old)?;
                for fragment in &group.new {
                    if lineage::is_kept(previous) {
                        lineage::row_ids(fragment)?;
                    }
                    manifest.fragments.push(fragment.clone());
                }
            }
            manifest.fragments.sort_by_key(|fragment| fragment.id);
        }
        Operation::ReserveFragments { count } => {
            let max = manifest.max_fragment_id.map_or(Some(*count), |max| max.checked_add(*count));
            manifest.max_fragment_id = Some(max.ok_or_else(too_many_fragments)?);
        }
        Operation::Merge { fragments, schema, .. } => {
            manifest.schema = schema.clone();
            manifest.fragments = fragments.clone();
            touch_changed(&mut manifest, previous);
            drop_dead_columns(&mut manifest)?;
        }
        Operation::Project { schema, .. } => {
            // Its message has no place for the schema's metadata: they stay.
            manifest.schema = Schema { fields: schema.fields.clone(), metadata: previous.schema.metadata.clone() };
            drop_dead_columns(&mut manifest)?;
        }
        Operation::UpdateConfig { config, table_metadata, schema_metadata, field_metadata } => {
            if let Some(update) = config {
                update.apply(&mut manifest.config);
            }
            if let Some(update) = table_metadata {
                update.apply(&mut manifest.table_metadata);
            }
            if let Some(update) = schema_metadata {
                update.apply(&mut manifest.schema.metadata);
            }
            for (id, update) in field_metadata {
                if !describe(&mut manifest.schema.fields, *id, update) {
                    return Err(Error::internal(format!("field {} is not in the latest version", id.0)));
                }
            }
        }
        Operation::Restore { version } => {
            let old = given
                .restored
                .filter(|old| old.version.0 == *version)
                .ok_or_else(|| Error::internal("a restore without the version that it brings back"))?;
            let has_row_ids = |manifest: &Manifest| manifest.reader_flags & feature::STABLE_ROW_IDS != 0;
            if has_row_ids(previous) && !has_row_ids(old) {
                return Err(Error::not_supported("restore of a version from before the table had stable row ids"));
            }
            let index_section = restored_indices(previous, old)?;
            manifest = Manifest {
                index_section,
                version: manifest.version,
                timestamp_ns: manifest.timestamp_ns,
                writer: manifest.writer,
                transaction_file: String::new(),
                transaction: None,
                max_fragment_id: previous.max_fragment_id.max(old.max_fragment_id),
                next_row_id: previous.next_row_id.max(old.next_row_id),
                ..old.clone()
            };
        }
        Operation::CreateIndex { new, removed } => {
            let mut indices = indices_of(previous)?;
            let is_removed = |entry: &IndexEntry| {
                let uuid = |index: &IndexMetadata| {
                    index.uuid.as_ref().map(|uuid| uuid.bytes.as_slice())
                        == entry.uuid.as_ref().map(|uuid| uuid.as_slice())
                };
                removed.iter().any(uuid)
            };
            indices.entries.retain(|entry| !is_removed(entry));
            for index in new {
                indices.entries.push(IndexEntry::new(index)?);
            }
            manifest.index_section = indices.encode();
        }
        Operation::DataReplacement { .. }
        | Operation::UpdateMemWalState
        | Operation::Clone
        | Operation::UpdateBases
        | Operation::Unknown => {
            return Err(Error::internal(format!("no manifest is built for: {}", transaction.operation.name())));
        }
    }
    manifest.transaction = Some(transaction);
    set_flags(&mut manifest);
    Ok(manifest)
}

fn indices_of(manifest: &Manifest) -> Result<IndexSection> {
    manifest.index_section.as_ref().map_or_else(|| Ok(IndexSection::default()), IndexSection::decode)
}

/// The indices of an old version under the write spec of the newest one: how far the shards are in the table never falls back. A spec
/// that was taken away since stays away, its shards are gone.
fn restored_indices(previous: &Manifest, old: &Manifest) -> Result<Option<Bytes>> {
    let is_spec = |entry: &IndexEntry| entry.name == spec::INDEX_NAME;
    let mut indices = indices_of(old)?;
    let Some(at) = indices.entries.iter().position(is_spec) else { return Ok(old.index_section.clone()) };
    let before = indices.entries.remove(at);
    let current = indices_of(previous)?.entries.into_iter().find(|entry| is_spec(entry) && entry.uuid == before.uuid);
    if let Some(current) = current {
        indices.entries.insert(at, current);
    }
    Ok(indices.encode())
}

fn change_fragments(manifest: &mut Manifest, updated: &[Fragment], removed: &[FragmentId]) -> Result<()> {
    let gone = |id: FragmentId| Error::internal(format!("fragment {} is not in the latest version", id.0));
    let mut removed: SortedSet<FragmentId> = removed.iter().copied().collect();
    manifest.fragments.retain(|fragment| !removed.remove(&fragment.id));
    let mut updated: SortedMap<FragmentId, &Fragment> =
        updated.iter().map(|fragment| (fragment.id, fragment)).collect();
    for fragment in &mut manifest.fragments {
        if let Some(replacement) = updated.remove(&fragment.id) {
            *fragment = replacement.clone();
        }
    }
    match removed.first().or_else(|| updated.keys().next()) {
        Some(id) => Err(gone(*id)),
        None => Ok(()),
    }
}

/// Rows of a fragment that got other files have other values.
fn touch_changed(manifest: &mut Manifest, previous: &Manifest) {
    if !lineage::is_kept(previous) {
        return;
    }
    let files: SortedMap<FragmentId, &Vec<DataFile>> =
        previous.fragments.iter().map(|fragment| (fragment.id, &fragment.files)).collect();
    for fragment in &mut manifest.fragments {
        if files.get(&fragment.id).is_some_and(|before| **before != fragment.files) {
            lineage::touch(fragment, manifest.version.0);
        }
    }
}

/// Files without a column of the schema go, and so do indices on a field that is gone.
fn drop_dead_columns(manifest: &mut Manifest) -> Result<()> {
    let alive: SortedSet<FieldId> = manifest.schema.all_fields().into_iter().map(|field| field.id).collect();
    for fragment in &mut manifest.fragments {
        fragment.files.retain(|file| file.fields.iter().any(|id| alive.contains(id)));
    }
    if let Some(bytes) = &manifest.index_section {
        let mut indices = IndexSection::decode(bytes)?;
        let count = indices.entries.len();
        indices.entries.retain(|index| index.fields.iter().all(|id| alive.contains(id)));
        if indices.entries.len() < count {
            manifest.index_section = indices.encode();
        }
    }
    Ok(())
}

/// Changes the metadata of a field, which the types of those around it carry; `false` when there is none of this id.
fn describe(fields: &mut [Field], id: FieldId, update: &UpdateMap) -> bool {
    for field in fields {
        if field.id == id {
            update.apply(&mut field.metadata);
            field.read_primary_key();
            return true;
        }
        if describe(&mut field.children, id, update) {
            field.data_type = of_children(&field.data_type, &field.children);
            return true;
        }
    }
    false
}

fn too_many_fragments() -> Error {
    Error::not_supported("more than 2^32 fragments")
}

fn add_fragments(manifest: &mut Manifest, fragments: Vec<Fragment>) -> Result<()> {
    for mut fragment in fragments {
        let id = match manifest.max_fragment_id {
            None => 0,
            Some(max) => max.checked_add(1).ok_or_else(too_many_fragments)?,
        };
        fragment.id = FragmentId(u64::from(id));
        if lineage::is_kept(manifest) {
            lineage::complete(&mut fragment, &mut manifest.next_row_id, manifest.version.0)?;
        }
        manifest.max_fragment_id = Some(id);
        manifest.fragments.push(fragment);
    }
    Ok(())
}

fn set_flags(manifest: &mut Manifest) {
    let flags = feature::flags_for(manifest);
    manifest.reader_flags = flags.reader;
    manifest.writer_flags = flags.writer;
}

fn writer() -> WriterVersion {
    WriterVersion {
        library: LIBRARY.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..WriterVersion::default()
    }
}

#[cfg(test)]
mod tests;

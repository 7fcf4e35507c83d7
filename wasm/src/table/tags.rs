//! Tags: names for versions. A tagged version is not cleaned up.
//!
//! A tag is written in one store transaction with the look at its manifest, and every change of one moves the pins: a cleanup that was
//! planned before it takes nothing.

use std::cell::Cell;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::table::{Tag, reference};
use crate::store::{DirId, ListOptions, RefMode, RefOutcome, RefRequest};
use crate::table::database::{Engine, repeat_lost};
use crate::table::handle::Table;
use crate::table::snapshot::Snapshot;
use crate::table::{commit, paths, versions};

/// A tag as `tags` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagInfo {
    pub name: String,
    /// The branch of the version; `None` = the main one.
    pub branch: Option<String>,
    pub version: u64,
    /// Of the version's manifest, in bytes, as the tag tells it.
    pub manifest_size: u64,
}

impl Table {
    /// All tags, in byte order of their names.
    ///
    /// # Errors
    /// `Corrupt` for a tag that cannot be read.
    pub async fn tags(&self) -> Result<Vec<TagInfo>> {
        let dir = self.standing()?.dir.clone();
        let tags = list(self.engine(), &dir).await?;
        self.engine().check_there(&dir).map_err(|error| self.name_it(error))?;
        let info = |(name, tag): (String, Tag)| TagInfo {
            name,
            branch: tag.branch,
            version: tag.version,
            manifest_size: tag.manifest_size,
        };
        Ok(tags.into_iter().map(info).collect())
    }

    /// The version of a tag.
    ///
    /// # Errors
    /// `NotFound`, `InvalidInput` for what can't be the name of a tag, `Corrupt`.
    pub async fn tag_version(&self, name: &str) -> Result<u64> {
        reference::check_tag_name(name)?;
        let dir = self.standing()?.dir.clone();
        let tag = find(self.engine(), &dir, name).await?;
        self.engine().check_there(&dir).map_err(|error| self.name_it(error))?;
        Ok(tag.ok_or_else(|| not_found(name))?.version)
    }

    /// Names a version.
    ///
    /// # Errors
    /// `AlreadyExists`; `NotFound` for the version; `InvalidInput` for the name.
    pub async fn create_tag(&self, name: &str, version: u64) -> Result<()> {
        reference::check_tag_name(name)?;
        let standing = self.standing()?;
        let now = reference::timestamp(self.engine().env.now_ns());
        let tag = Tag { version, created_at: Some(now.clone()), updated_at: Some(now), ..Tag::default() };
        put(self.engine(), &standing, name, tag, RefMode::Create).await.map_err(|error| self.name_it(error))
    }

    /// Moves a tag to another version.
    ///
    /// # Errors
    /// `NotFound` for the tag or the version; `InvalidInput` for the name; `Corrupt`.
    pub async fn update_tag(&self, name: &str, version: u64) -> Result<()> {
        reference::check_tag_name(name)?;
        let standing = self.standing()?;
        let old = find(self.engine(), &standing.dir, name).await?.ok_or_else(|| not_found(name))?;
        let updated_at = Some(reference::timestamp(self.engine().env.now_ns()));
        let tag = Tag { branch: None, version, updated_at, ..old };
        put(self.engine(), &standing, name, tag, RefMode::Replace).await.map_err(|error| self.name_it(error))
    }

    /// Takes a tag away; its version stays until it is cleaned up.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for the name.
    pub async fn delete_tag(&self, name: &str) -> Result<()> {
        reference::check_tag_name(name)?;
        let standing = self.standing()?;
        let (store, path) = (&self.engine().store, paths::tag(name));
        store.head(&standing.dir, &path).await?.ok_or_else(|| not_found(name))?;
        repeat_lost(async || store.delete(&standing.dir, &path).await).await.map(drop)
    }

    /// Pins the handle to the version of a tag, read-only.
    ///
    /// # Errors
    /// `NotFound` for the tag or its version; `NotSupported` for a tag of a branch; the handle is unchanged.
    pub async fn checkout_tag(&self, name: &str) -> Result<()> {
        reference::check_tag_name(name)?;
        let dir = self.standing()?.dir.clone();
        let tag = find(self.engine(), &dir, name).await?.ok_or_else(|| not_found(name))?;
        match tag.branch {
            None => self.checkout(tag.version).await,
            Some(branch) => Err(Error::not_supported(format!("checkout of tag {name} of branch {branch}"))),
        }
    }
}

/// Every tag with its name.
///
/// # Errors
/// `Corrupt` naming the file of a tag that cannot be read.
pub(crate) async fn list(engine: &Engine, dir: &DirId) -> Result<Vec<(String, Tag)>> {
    let options = ListOptions { shallow: true, ..ListOptions::default() };
    let listing = engine.store.list(dir, &paths::tags_folder(), &options).await?;
    let mut tags = Vec::new();
    for object in listing.objects {
        let Some(name) = reference::parse_file_name(object.path.file_name()) else { continue };
        match engine.store.get(dir, &object.path).await {
            Ok(bytes) => tags.push((name, Tag::decode(&bytes).map_err(|error| error.at(&object.path))?)),
            // Deleted meanwhile.
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(tags)
}

async fn find(engine: &Engine, dir: &DirId, name: &str) -> Result<Option<Tag>> {
    let path = paths::tag(name);
    match engine.store.get(dir, &path).await {
        Ok(bytes) => Tag::decode(&bytes).map_err(|error| error.at(&path)).map(Some),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn put(engine: &Engine, standing: &Snapshot, name: &str, tag: Tag, mode: RefMode) -> Result<()> {
    let no_version = || Error::NotFound { what: format!("version main:{}", tag.version) };
    if tag.version == 0 {
        return Err(no_version());
    }
    let manifest = versions::path_beside(standing, tag.version);
    let meta = engine.store.head(&standing.dir, &manifest).await?.ok_or_else(no_version)?;
    let bytes = Bytes::from(Tag { manifest_size: meta.size_bytes, ..tag.clone() }.encode());
    let path = paths::tag(name);
    let request = RefRequest { dir: standing.dir.clone(), path: path.clone(), bytes: bytes.clone(), manifest, mode };
    let attempts = Cell::new(0_u32);
    let attempt = async || {
        attempts.set(attempts.get() + 1);
        engine.store.put_ref(request.clone()).await
    };
    match repeat_lost(attempt).await? {
        RefOutcome::Written => Ok(()),
        RefOutcome::Gone => Err(commit::gone()),
        RefOutcome::Missing => Err(no_version()),
        RefOutcome::Absent => Err(not_found(name)),
        // After an attempt whose answer was lost it may be ours: the bytes hold the moment at which they were made.
        RefOutcome::Exists if attempts.get() > 1 && engine.store.get(&standing.dir, &path).await? == bytes => Ok(()),
        RefOutcome::Exists => Err(Error::AlreadyExists { what: format!("tag {name}") }),
    }
}

fn not_found(name: &str) -> Error {
    Error::NotFound { what: format!("tag {name}") }
}

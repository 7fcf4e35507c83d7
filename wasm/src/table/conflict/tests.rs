use roaring::RoaringBitmap;

use super::*;
use crate::collections::{SortedMap, SortedSet};
use crate::format::proto;
use crate::format::table::{DataFile, Fragment, Replacement, RewriteGroup};

/// The fragment that both sides touch, and one of each side's own.
const SHARED: u64 = 3;

fn fragment(id: u64, fields: &[i32]) -> Fragment {
    let file = DataFile {
        path: format!("{id}.lance"),
        fields: fields.iter().map(|id| FieldId(*id)).collect(),
        column_indices: vec![0; fields.len()],
        major_version: 2,
        minor_version: 2,
        size_bytes: Some(1),
        base_id: None,
    };
    Fragment {
        id: FragmentId(id),
        files: vec![file],
        deletion: None,
        physical_rows: 10,
        row_ids: None,
        last_updated_at_versions: None,
        created_at_versions: None,
    }
}

fn schema(ids: &[i32]) -> Schema {
    let proto: Vec<proto::Field> = ids
        .iter()
        .map(|id| proto::Field {
            name: format!("f{id}"),
            id: *id,
            parent_id: -1,
            logical_type: "int32".into(),
            nullable: true,
            ..Default::default()
        })
        .collect();
    Schema::from_proto(&proto, &[]).unwrap()
}

fn config(key: &str) -> Operation {
    Operation::UpdateConfig {
        config: Some(update(key)),
        table_metadata: None,
        schema_metadata: None,
        field_metadata: SortedMap::new(),
    }
}

fn update(key: &str) -> UpdateMap {
    UpdateMap { entries: vec![(key.into(), Some("v".into()))], replaces: false }
}

fn schema_metadata() -> Operation {
    Operation::UpdateConfig {
        config: None,
        table_metadata: None,
        schema_metadata: Some(update("k")),
        field_metadata: SortedMap::new(),
    }
}

fn field_metadata(id: i32) -> Operation {
    Operation::UpdateConfig {
        config: None,
        table_metadata: None,
        schema_metadata: None,
        field_metadata: SortedMap::from([(FieldId(id), update("k"))]),
    }
}

fn overwrite(key: Option<&str>) -> Operation {
    let config = key.map(|key| (key.to_owned(), "w".to_owned())).into_iter().collect();
    Operation::Overwrite { fragments: vec![], schema: schema(&[0, 1]), config }
}

fn index(name: &str, field: i32, fragments: &[u64]) -> Operation {
    let mut fragment_bitmap = Vec::new();
    let bitmap: RoaringBitmap = fragments.iter().map(|id| u32::try_from(*id).unwrap()).collect();
    bitmap.serialize_into(&mut fragment_bitmap).unwrap();
    let index = proto::IndexMetadata { name: name.into(), fields: vec![field], fragment_bitmap, ..Default::default() };
    Operation::CreateIndex { new: vec![index], removed: vec![] }
}

fn replacement(id: u64, field: i32) -> Operation {
    let file = fragment(id, &[field]).files.pop();
    Operation::DataReplacement { replacements: vec![Replacement { fragment: FragmentId(id), file }] }
}

fn delete(updated: &[u64], deleted: &[u64]) -> Operation {
    Operation::Delete {
        updated: updated.iter().map(|id| fragment(*id, &[0, 1])).collect(),
        deleted: deleted.iter().map(|id| FragmentId(*id)).collect(),
        predicate: String::new(),
    }
}

fn updates(updated: &[u64], removed: &[u64]) -> Operation {
    Operation::Update {
        removed: removed.iter().map(|id| FragmentId(*id)).collect(),
        updated: updated.iter().map(|id| fragment(*id, &[0, 1])).collect(),
        new: vec![fragment(0, &[0, 1])],
        fields_modified: vec![],
        fields_preserving: vec![],
        has_key_filter: false,
    }
}

fn rewrite(old: u64) -> Operation {
    Operation::Rewrite { groups: vec![RewriteGroup { old: vec![fragment(old, &[0, 1])], new: vec![] }] }
}

fn merge(preserves_nullability: bool, ids: &[i32]) -> Operation {
    Operation::Merge { fragments: vec![], schema: schema(ids), preserves_nullability }
}

fn project(preserves_nullability: bool, ids: &[i32]) -> Operation {
    Operation::Project { schema: schema(ids), preserves_nullability }
}

/// One case of each column of the matrix and of each condition in it.
fn theirs() -> Vec<(&'static str, Operation)> {
    vec![
        ("append", Operation::Append { fragments: vec![fragment(0, &[0, 1])] }),
        ("delete shared", delete(&[SHARED], &[])),
        ("delete shared whole", delete(&[], &[SHARED])),
        ("delete other", delete(&[8], &[9])),
        ("update shared", updates(&[SHARED], &[])),
        ("update shared whole", updates(&[], &[SHARED])),
        ("update other", updates(&[8], &[9])),
        ("overwrite", overwrite(None)),
        ("overwrite key k", overwrite(Some("k"))),
        ("index i on 0 of shared", index("i", 0, &[SHARED])),
        ("index j on 1 of other", index("j", 1, &[8])),
        ("rewrite shared", rewrite(SHARED)),
        ("rewrite other", rewrite(8)),
        ("merge adds nullable", merge(true, &[0, 1, 2])),
        ("merge adds", merge(false, &[0, 1, 2])),
        ("merge casts 0", merge(true, &[1, 2])),
        ("project keeps", project(true, &[0, 1])),
        ("project narrows", project(false, &[0, 1])),
        ("project drops 0", project(true, &[1])),
        ("restore", Operation::Restore { version: 1 }),
        ("reserve", Operation::ReserveFragments { count: 1 }),
        ("config key k", config("k")),
        ("config key l", config("l")),
        ("schema metadata", schema_metadata()),
        ("metadata of 0", field_metadata(0)),
        ("replace 0 of shared", replacement(SHARED, 0)),
        ("replace 1 of other", replacement(8, 1)),
        ("mem wal", Operation::UpdateMemWalState),
        ("clone", Operation::Clone),
        ("bases", Operation::UpdateBases),
        ("unknown", Operation::Unknown),
    ]
}

fn code(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Compatible => "ok",
        Verdict::Rebase => "rb",
        Verdict::Retry => "RT",
        Verdict::RetryHere => "RH",
        Verdict::Incompatible => "IN",
    }
}

/// The verdicts over `theirs`, in its order.
fn row(operation: &Operation, fragments: &[u64], guards_keys: bool) -> String {
    let fragments: SortedSet<FragmentId> = fragments.iter().map(|id| FragmentId(*id)).collect();
    let ours = Ours { operation, fragments: &fragments, guards_keys };
    let verdict = |(_, theirs): (&str, Operation)| {
        let after = match &theirs {
            Operation::Merge { schema, .. } | Operation::Project { schema, .. } => schema.clone(),
            _ => schema(&[0, 1]),
        };
        code(check(ours, &theirs, &after))
    };
    theirs().into_iter().map(verdict).collect::<Vec<_>>().join(" ")
}

#[test]
fn t11_t16_every_cell_of_the_matrix_and_each_of_its_conditions_judges_as_the_format_says() {
    let ours: Vec<(&str, String)> = vec![
        ("append", row(&Operation::Append { fragments: vec![fragment(0, &[0, 1])] }, &[], false)),
        ("delete", row(&delete(&[], &[]), &[SHARED, 5], false)),
        ("update", row(&updates(&[], &[]), &[SHARED, 5], false)),
        ("upsert", row(&updates(&[], &[]), &[SHARED, 5], true)),
        ("overwrite", row(&overwrite(None), &[], false)),
        ("overwrite key k", row(&overwrite(Some("k")), &[], false)),
        ("index i on 0", row(&index("i", 0, &[SHARED]), &[], false)),
        ("rewrite", row(&rewrite(SHARED), &[SHARED], false)),
        ("merge", row(&merge(true, &[0, 1, 2]), &[], false)),
        ("project keeps", row(&project(true, &[0, 1]), &[], false)),
        ("project narrows", row(&project(false, &[0, 1]), &[], false)),
        ("restore", row(&Operation::Restore { version: 1 }, &[], false)),
        ("reserve", row(&Operation::ReserveFragments { count: 1 }, &[], false)),
        ("config key k", row(&config("k"), &[], false)),
        ("schema metadata", row(&schema_metadata(), &[], false)),
        ("metadata of 0", row(&field_metadata(0), &[], false)),
        ("replace 0", row(&replacement(SHARED, 0), &[SHARED], false)),
    ];
    let found: Vec<String> = ours.iter().map(|(name, row)| format!("{name:<16}{row}")).collect();
    #[rustfmt::skip]
    let expected = [
        //               append         update            index  rewr. merge    project  re re config      replace other
        //                  delete shared/other  overwrite                                st sv k  l  sm fm
        "append          ok ok ok ok ok ok ok IN IN ok ok ok ok ok RT RH ok RT RH IN ok ok ok ok ok ok ok IN IN ok RT",
        "delete          ok rb rb ok rb rb ok IN IN ok ok RT ok RT RT RT ok ok ok IN ok ok ok ok ok RT ok IN IN ok RT",
        "update          ok rb rb ok rb rb ok IN IN ok ok RT ok RT RT RT ok RT ok IN ok ok ok ok ok RT ok IN IN ok RT",
        "upsert          RT rb rb ok RT RT RT IN IN ok ok RT ok RT RT RT ok RT ok IN ok ok ok ok ok RT ok IN IN ok RT",
        "overwrite       ok ok ok ok ok ok ok RT RT ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok IN IN ok RT",
        "overwrite key k ok ok ok ok ok ok ok RT IN ok ok ok ok ok ok ok ok ok ok ok ok IN ok ok ok ok ok IN IN ok RT",
        "index i on 0    ok ok ok ok ok ok ok IN IN RT ok RT ok ok ok RT ok ok RT IN ok ok ok ok ok RT ok IN IN ok RT",
        "rewrite         ok RT RT ok RT RT ok IN IN RT ok RT ok RT RT RT ok ok ok IN ok ok ok ok ok RT ok IN IN ok RT",
        "merge           RT RT RT RT RT RT RT IN IN ok ok RT RT RT RT RT IN IN IN IN ok ok ok RT RT RT RT IN IN ok RT",
        "project keeps   ok ok ok ok ok ok ok IN IN ok ok ok ok RT RT RT RT RT RT IN ok ok ok RT RT ok ok IN IN ok RT",
        "project narrows RT ok ok ok RT RT RT IN IN ok ok ok ok RT RT RT RT RT RT IN ok ok ok RT RT ok ok IN IN ok RT",
        "restore         ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok ok IN IN ok RT",
        "reserve         ok ok ok ok ok ok ok IN IN ok ok ok ok ok ok ok ok ok ok IN ok ok ok ok ok ok ok IN IN ok RT",
        "config key k    ok ok ok ok ok ok ok ok IN ok ok ok ok ok ok ok ok ok ok ok ok IN ok ok ok ok ok IN IN ok RT",
        "schema metadata ok ok ok ok ok ok ok IN IN ok ok ok ok RT RT RT ok ok ok RT ok ok ok IN ok ok ok IN IN ok RT",
        "metadata of 0   ok ok ok ok ok ok ok IN IN ok ok ok ok RT RT RT ok ok RT RT ok ok ok ok IN ok ok IN IN ok RT",
        "replace 0       ok ok IN ok RT IN ok IN IN RT ok RT ok RT RT RT ok ok IN IN ok ok ok ok ok RT ok IN IN ok RT",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_remembered_of_a_commit_judges_as_the_whole_commit() {
    let after = schema(&[]);
    let mut judged = 0;
    for (_, ours) in theirs() {
        for (name, theirs) in theirs() {
            let Some(gist) = gist(&theirs) else { continue };
            for guards_keys in [false, true] {
                let fragments = SortedSet::from([FragmentId(SHARED)]);
                let ours = Ours { operation: &ours, fragments: &fragments, guards_keys };
                // Whatever the schema is: it is the one that was there before.
                let whole = check(ours, &theirs, &schema(&[0, 1]));
                assert_eq!(check(ours, &gist, &after), whole, "{name} against {:?}", ours.operation);
                judged += 1;
            }
        }
    }
    assert!(judged > 100, "{judged}");
}

/// A rule as the table of the documentation shows it.
fn text(rule: Rule) -> &'static str {
    match rule {
        Rule::Proceed => "ok",
        Rule::Rebase => "shared: rebase",
        Rule::RetryShared => "shared: retry",
        Rule::Retry => "retry",
        Rule::Exclude => "conflict",
        Rule::RetryKeys => "guards keys: retry",
        Rule::RebaseKeys => "guards keys: retry; shared: rebase",
        Rule::RetryTheirNullability => "theirs narrows: retry",
        Rule::RetryOurNullability => "ours narrows: retry",
        Rule::RetryExcludeKey => "same key: conflict; retry",
        Rule::ExcludeKey => "same key: conflict",
        Rule::ExcludeSchemaOrKey => "schema or same key: conflict",
        Rule::ExcludeSameMetadata => "same entry: conflict",
        Rule::RetryOurMetadata => "ours of the schema: retry",
        Rule::RetryTheirMetadata => "theirs of the schema: retry",
        Rule::RetryGoneField => "field gone: retry",
        Rule::ExcludeGoneField => "field gone: conflict",
        Rule::RetrySameIndex => "same index: retry",
        Rule::RetryRewrittenIndexed => "indexed rewritten: retry",
        Rule::RetryIndexedRewritten => "rewritten indexed: retry",
        Rule::RetryReplacedIndexed => "indexed replaced: retry",
        Rule::RetryIndexedReplaced => "replaced indexed: retry",
        Rule::ExcludeGoneFragment => "fragment gone: conflict",
        Rule::ReplacedUpdated => "fragment gone: conflict; shared: retry",
        Rule::RetrySameReplacement => "same column: retry",
    }
}

#[test]
fn the_documentation_shows_the_matrix() {
    let kinds = [
        "Append",
        "Delete",
        "Update",
        "Overwrite",
        "CreateIndex",
        "Rewrite",
        "Merge",
        "Project",
        "Restore",
        "ReserveFragments",
        "UpdateConfig",
        "DataReplacement",
    ];
    let mut table = format!("| ours \\ theirs | {} |\n|{}\n", kinds.join(" | "), "---|".repeat(13));
    for (kind, rules) in kinds.iter().zip(MATRIX) {
        let cells: Vec<&str> = rules.into_iter().map(text).collect();
        table.push_str(&format!("| **{kind}** | {} |\n", cells.join(" | ")));
    }
    let documentation = include_str!("../../../docs/conflicts.md");
    assert!(documentation.contains(&table), "wasm/docs/conflicts.md lacks this table:\n{table}");
}

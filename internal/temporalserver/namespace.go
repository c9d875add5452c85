package temporalserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	persistencesql "go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

// keywordColumns is how many keyword columns the visibility table has.
const keywordColumns = 10

// ensureNamespace makes the namespace with its retention and search attributes,
// or adds to an existing one the attributes that it lacks. The server must not
// be running: it would not hear of the change. The retention of a namespace that
// exists is the operator's and stays.
func ensureNamespace(ctx context.Context, cfg *config.SQL, o Options) error {
	db, err := persistencesql.NewSQLDB(sqlplugin.DbKindMain, cfg, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer db.Close()
	rows, err := db.SelectFromNamespace(ctx, sqlplugin.NamespaceFilter{Name: &o.Namespace})
	if errors.Is(err, sql.ErrNoRows) {
		return createNamespace(cfg, o)
	}
	if err != nil {
		return fmt.Errorf("look for namespace %s: %w", o.Namespace, err)
	}
	return addAttributes(ctx, db, rows[0], o.SearchAttributes)
}

func createNamespace(cfg *config.SQL, o Options) error {
	ns, err := sqlite.NewNamespaceConfig(clusterName, o.Namespace, false, nil)
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", o.Namespace, err)
	}
	ns.Detail.Config.Retention = durationpb.New(o.Retention)
	if _, err := alias(ns.Detail, o.SearchAttributes); err != nil {
		return err
	}
	if err := sqlite.CreateNamespaces(cfg, ns); err != nil {
		return fmt.Errorf("create namespace %s: %w", o.Namespace, err)
	}
	return nil
}

func addAttributes(ctx context.Context, db sqlplugin.DB, row sqlplugin.NamespaceRow, names []string) error {
	serializer := serialization.NewSerializer()
	detail, err := serializer.NamespaceDetailFromBlob(persistence.NewDataBlob(row.Data, row.DataEncoding))
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", row.Name, err)
	}
	changed, err := alias(detail, names)
	if err != nil || !changed {
		return err
	}
	blob, err := serializer.NamespaceDetailToBlob(detail)
	if err != nil {
		return fmt.Errorf("write namespace %s: %w", row.Name, err)
	}
	row.Data, row.DataEncoding = blob.GetData(), blob.GetEncodingType().String()
	if _, err := db.UpdateNamespace(ctx, &row); err != nil {
		return fmt.Errorf("write namespace %s: %w", row.Name, err)
	}
	return nil
}

// alias gives each name that has none the first free keyword column, in order,
// so that every store has the same columns for the same list. It reports
// whether it changed anything.
func alias(detail *persistencespb.NamespaceDetail, names []string) (bool, error) {
	if detail.Config.CustomSearchAttributeAliases == nil {
		detail.Config.CustomSearchAttributeAliases = map[string]string{}
	}
	aliases := detail.Config.CustomSearchAttributeAliases
	known := make([]string, 0, len(aliases))
	for _, name := range aliases {
		known = append(known, name)
	}
	changed := false
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		column, ok := freeColumn(aliases)
		if !ok {
			return false, &AttributeLimitError{Namespace: detail.GetInfo().GetName(), Attribute: name}
		}
		aliases[column] = name
		known = append(known, name)
		changed = true
	}
	return changed, nil
}

func freeColumn(aliases map[string]string) (string, bool) {
	for i := 1; i <= keywordColumns; i++ {
		column := fmt.Sprintf("Keyword%02d", i)
		if _, taken := aliases[column]; !taken {
			return column, true
		}
	}
	return "", false
}

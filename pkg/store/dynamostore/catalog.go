package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// layout is the version of the items' layout that this package reads and
// writes.
const layout = 1

const (
	attrDefinition = "c" // of the catalog
	attrVersion    = "n" // number of changes
)

// definition is the catalog of a store.
type definition struct {
	Layout    int            `json:"layout"`
	NextIndex uint32         `json:"nextIndex"` // the number of the next new index
	Indexes   driver.Catalog `json:"indexes"`

	version uint64
}

// index is an index of a handle. Numbers are never reused: a changed index is a
// new one, and the entries of one that was released are ignored.
type index = driver.CatalogIndex

// tableName matches the characters of a table's name, which has 3 to 255.
var tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]*$`)

// tableOf returns the name of a store as a valid name of a table: bytes other than
// ASCII letters, digits, '_' and '-' become a dot and two hexadecimal digits.
func tableOf(store string) string {
	var b strings.Builder
	for _, c := range []byte(store) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, ".%02x", c)
		}
	}
	return b.String()
}

// storeOf is the reverse of tableOf; false for what that never makes.
func storeOf(table string) (store string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(table); i++ {
		c := table[i]
		if c == '.' && i+2 < len(table) {
			n, err := strconv.ParseUint(table[i+1:i+3], 16, 8)
			if err != nil {
				return "", false
			}
			c = byte(n)
			i += 2
		}
		b.WriteByte(c)
	}
	return b.String(), tableOf(b.String()) == table
}

// Stores implements driver.Backend. Tables without a catalog are those of others.
func (b *Backend) Stores(ctx context.Context) (names []string, err error) {
	pages := dynamodb.NewListTablesPaginator(b.client.ListTables, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, b.wrapError(ctx, err, b.prefix+"*")
		}
		for _, table := range page.TableNames {
			short, has := strings.CutPrefix(table, b.prefix)
			name, ok := storeOf(short)
			if !has || !ok || name == "" {
				continue
			}
			switch def, err := b.definition(ctx, table); {
			case errors.Is(err, errs.Unavailable), errors.Is(err, errs.Canceled):
				return nil, err
			case err == nil && def.version > 0:
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// Open implements driver.Backend.
func (b *Backend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, errCanceled(err)
	}
	if err := spec.Check(); err != nil {
		return nil, err
	}
	table := b.prefix + tableOf(spec.Name)
	if len(table) < 3 || len(table) > 255 || !tableName.MatchString(table) {
		return nil, errs.New(errs.Invalid,
			"%q is not a valid table name: DynamoDB allows 3 to 255 ASCII letters, digits, '_', '-' and '.'; "+
				"change the backend's tablePrefix or the store's name", table)
	}
	if err := b.ensureTable(ctx, table); err != nil {
		return nil, err
	}
	s, err := b.handle(ctx, table, spec)
	if err != nil || spec.Online {
		return s, err
	}
	if err := driver.BuildIndexes(ctx, s); err != nil {
		return nil, err
	}
	return s, s.Release(ctx)
}

// handle returns a handle of a store, whose indexes it adds to the catalog.
func (b *Backend) handle(ctx context.Context, table string, spec driver.Spec) (*store, error) {
	var own []index
	err := b.changeCatalog(ctx, table, func(def *definition) (changed bool, err error) {
		newID := func() uint32 { def.NextIndex++; return def.NextIndex - 1 }
		isNew := def.version == 0
		def.Indexes, own, changed = def.Indexes.List(spec.Indexes, isNew, newID)
		return changed || isNew, nil
	})
	return newStore(b, table, own, &spec), err
}

// changeCatalog changes the catalog of a table. change returns whether it has changed it, and is called again if
// another process was first.
func (b *Backend) changeCatalog(ctx context.Context, table string, change func(*definition) (bool, error)) error {
	for range maxRetries {
		def, err := b.definition(ctx, table)
		if err != nil {
			return err
		}
		changed, err := change(&def)
		if err != nil || !changed {
			return err
		}
		if saved, err := b.save(ctx, table, &def); err != nil || saved {
			return err
		}
	}
	return b.unavailable(nil, "other processes keep changing the indexes of the table %s", table)
}

// definition reads the catalog. The version of a missing one is 0.
func (b *Backend) definition(ctx context.Context, table string) (definition, error) {
	def := definition{Layout: layout, NextIndex: firstIndex}
	out, err := b.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: itemKey(catalogPartition, singleSortKey), ConsistentRead: trueValue,
	})
	if err != nil {
		return def, b.wrapError(ctx, err, table)
	}
	if out.Item == nil {
		return def, nil
	}
	if err := json.Unmarshal(bytesOf(out.Item[attrDefinition]), &def); err != nil {
		return def, errFormat(table, "a catalog", err)
	}
	if def.version, err = numberOf(out.Item[attrVersion]); err != nil {
		return def, errFormat(table, "a catalog", err)
	}
	if def.Layout != layout {
		return def, errs.New(errs.Internal,
			"the table %s has a layout that this version of belfry can't read: a newer version wrote it", table)
	}
	return def, nil
}

// save writes the catalog. It returns false when another process has changed it.
func (b *Backend) save(ctx context.Context, table string, def *definition) (bool, error) {
	data, err := json.Marshal(def)
	if err != nil {
		return false, errs.Wrap(err, errs.Internal, "dynamostore: the catalog of the table %s", table)
	}
	it := itemKey(catalogPartition, singleSortKey)
	it[attrDefinition], it[attrVersion] = bytesAttr(data), numberAttr(def.version+1)
	in := &dynamodb.PutItemInput{TableName: &table, Item: it}
	condition := "attribute_not_exists(k)"
	if def.version > 0 {
		condition = "n = :n"
		in.ExpressionAttributeValues = item{":n": numberAttr(def.version)}
	}
	in.ConditionExpression = &condition
	_, err = b.client.PutItem(ctx, in)
	switch {
	case conditionFailed(err):
		return false, nil
	case err != nil:
		return false, b.wrapError(ctx, err, table)
	default:
		def.version++
		return true, nil
	}
}

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
	Layout    int     `json:"layout"`
	NextIndex uint32  `json:"nextIndex"` // the number of the next new index
	Indexes   []index `json:"indexes"`

	version uint64
}

// index is an index in the catalog. Numbers are never reused: a changed index is a
// new one, and the entries of the old one are ignored.
type index struct {
	ID    uint32 `json:"id"`
	Name  string `json:"name"`
	Parts int    `json:"parts"`
	Multi bool   `json:"multi"`

	// Filled: the index has the entries of all records. Filling one that is not
	// was interrupted, or is in progress in another process.
	Filled bool `json:"filled"`
}

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
	pages := dynamodb.NewListTablesPaginator(b.client, &dynamodb.ListTablesInput{})
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
		return nil, errs.New(errs.Invalid, "%q is not a valid table name: DynamoDB allows 3 to 255 ASCII letters, digits, '_', '-' and '.'; "+
			"change the backend's tablePrefix or the store's name", table)
	}
	if err := b.ensureTable(ctx, table); err != nil {
		return nil, err
	}
	def, err := b.syncCatalog(ctx, table, spec.Indexes)
	if err != nil {
		return nil, err
	}
	s := newStore(b, table, def)
	if err := s.fillNew(ctx, def, spec); err != nil {
		return nil, err
	}
	return s, nil
}

// syncCatalog updates the catalog to the wanted indexes.
func (b *Backend) syncCatalog(ctx context.Context, table string, wanted []driver.Index) (definition, error) {
	for range maxRetries {
		def, err := b.definition(ctx, table)
		if err != nil {
			return def, err
		}
		if !def.reconcile(wanted) && def.version > 0 {
			return def, nil
		}
		saved, err := b.save(ctx, table, &def)
		if err != nil || saved {
			return def, err
		}
	}
	return definition{}, b.unavailable(nil, "other processes keep changing the indexes of the table %s", table)
}

// definition reads the catalog. Its version is 0 when there is none.
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
		return def, errs.New(errs.Internal, "the table %s has a layout that this version of belfry can't read: a newer version wrote it", table)
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

// reconcile changes the definition to the wanted indexes: it keeps those that are
// equal, adds the others, and drops the rest. It reports whether anything changed.
func (d *definition) reconcile(wanted []driver.Index) (changed bool) {
	have := make(map[driver.Index]index)
	for _, ix := range d.Indexes {
		have[driver.Index{Name: ix.Name, Parts: ix.Parts, Multi: ix.Multi}] = ix
	}
	changed = len(have) != len(wanted)
	d.Indexes = nil
	for _, want := range wanted {
		ix, ok := have[want]
		if !ok {
			ix = index{ID: d.NextIndex, Name: want.Name, Parts: want.Parts, Multi: want.Multi}
			d.NextIndex++
			changed = true
		}
		d.Indexes = append(d.Indexes, ix)
	}
	return changed
}

// fillNew fills the indexes that are not filled, and marks them as filled.
func (s *store) fillNew(ctx context.Context, def definition, spec driver.Spec) error {
	var filling []uint32
	for _, ix := range def.Indexes {
		if !ix.Filled {
			filling = append(filling, ix.ID)
		}
	}
	if len(filling) == 0 {
		return nil
	}
	if err := s.fill(ctx, spec.Keys); err != nil {
		return err
	}
	for range maxRetries {
		now, err := s.b.definition(ctx, s.table)
		if err != nil {
			return err
		}
		for i := range now.Indexes {
			for _, id := range filling {
				now.Indexes[i].Filled = now.Indexes[i].Filled || now.Indexes[i].ID == id
			}
		}
		if saved, err := s.b.save(ctx, s.table, &now); err != nil || saved {
			return err
		}
	}
	return s.b.unavailable(nil, "other processes keep changing the indexes of the table %s", s.table)
}

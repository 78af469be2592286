package dynamostore

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// layout is the version of the items' layout that this package reads and
// writes.
const layout = 1

const (
	attrDefinition = "c" // of the catalogue
	attrVersion    = "n" // how often it has been changed
)

// definition is what the catalogue says of a store.
type definition struct {
	Layout    int     `json:"layout"`
	NextIndex uint32  `json:"nextIndex"` // the number of the next new index
	Indexes   []index `json:"indexes"`

	version uint64
}

// index is an index in the catalogue. Its number is never used twice, so an
// index that changes is a new one, and entries of the old mislead no one.
type index struct {
	ID    uint32 `json:"id"`
	Name  string `json:"name"`
	Parts int    `json:"parts"`
	Multi bool   `json:"multi"`

	// Filled: it has the entries of every record. One that isn't was
	// interrupted while it was being filled, or is being filled by another
	// process.
	Filled bool `json:"filled"`
}

// tableName is what DynamoDB takes.
var tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

// tableOf is a store's name as DynamoDB takes it: what is not a letter of
// ASCII, a digit, '_' or '-' becomes a dot and two hexadecimal digits a byte.
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

// Open is part of driver.Backend.
func (b *Backend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, canceled(err)
	}
	if err := spec.Check(); err != nil {
		return nil, err
	}
	table := b.prefix + tableOf(spec.Name)
	if !tableName.MatchString(table) {
		return nil, errs.New(errs.Invalid, "%q can't be the name of a table: DynamoDB takes 3 to 255 letters of ASCII, digits, '_', '-' and '.'; "+
			"change the backend's tablePrefix or the store's name", table)
	}
	if err := b.makeTable(ctx, table); err != nil {
		return nil, err
	}
	def, err := b.agree(ctx, table, spec.Indexes)
	if err != nil {
		return nil, err
	}
	s := newStore(b, table, def)
	if err := s.fillNew(ctx, def, spec); err != nil {
		return nil, err
	}
	return s, nil
}

// agree makes the catalogue say what indexes are wanted.
func (b *Backend) agree(ctx context.Context, table string, wanted []driver.Index) (definition, error) {
	for range maxRereads {
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
	return definition{}, b.away(nil, "other processes keep changing the indexes of the table %s", table)
}

// definition reads the catalogue. Where there is none yet the version is 0.
func (b *Backend) definition(ctx context.Context, table string) (definition, error) {
	def := definition{Layout: layout, NextIndex: firstIndex}
	out, err := b.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: itemKey(cataloguePartition, alone), ConsistentRead: yes,
	})
	if err != nil {
		return def, b.fault(ctx, err, table)
	}
	if out.Item == nil {
		return def, nil
	}
	if err := json.Unmarshal(bytesOf(out.Item[attrDefinition]), &def); err != nil {
		return def, errFormat(table, "a catalogue", err)
	}
	if def.version, err = numberOf(out.Item[attrVersion]); err != nil {
		return def, errFormat(table, "a catalogue", err)
	}
	if def.Layout != layout {
		return def, errs.New(errs.Internal, "the table %s has a layout that this belfry can't read: a newer one wrote it", table)
	}
	return def, nil
}

// save writes the catalogue unless another process has changed it meanwhile.
func (b *Backend) save(ctx context.Context, table string, def *definition) (bool, error) {
	data, err := json.Marshal(def)
	if err != nil {
		return false, errs.Wrap(err, errs.Internal, "dynamostore: the catalogue of the table %s", table)
	}
	it := itemKey(cataloguePartition, alone)
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
		return false, b.fault(ctx, err, table)
	default:
		def.version++
		return true, nil
	}
}

// reconcile makes the definition that of wanted: indexes that are the same
// stay, others are added, the rest is dropped. It reports whether anything
// changed.
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

// fillNew fills the indexes that are not yet, and notes that they are.
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
	for range maxRereads {
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
	return s.b.away(nil, "other processes keep changing the indexes of the table %s", s.table)
}

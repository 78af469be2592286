package console

import (
	"net/http"
	"slices"
	"strings"
	"unicode"

	"belfry/pkg/api/console/form"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/operations/table"
	"belfry/pkg/problem"
	"belfry/pkg/store"
)

const (
	maxImportSamples = 3   // rows whose values the mapping shows
	maxKinds         = 400 // columns of a form that chooses kinds: of more, the schema alone says it
)

// columnsPage is what the mapping of the columns of a file shows.
type columnsPage struct {
	Store    StoreInfo
	Upload   *bulk.Upload
	Columns  []importColumn
	Targets  []string
	Kinds    []importKind // of a file of CSV
	Existing string
	Named    bool // a column has the uuids
	Problem  string
	Fields   []errs.Field
}

// importColumn is a column of a file in the mapping.
type importColumn struct {
	Number   int
	Name, To string
	Kind     table.Kind
	Kept     bool // belfry keeps a field of this name itself
	Samples  []string
}

// importKind is a choice of what the cells of a column are.
type importKind struct {
	Value table.Kind
	Label string
}

var importKinds = []importKind{
	{"", "As the schema says"}, {table.Text, "Text"}, {table.Number, "Number"}, {table.Boolean, "True or false"},
	{table.Time, "Date and time"}, {table.AsJSON, "JSON"}, {table.Seen, "As it looks"},
}

// submittedColumns is the mapping as a form has sent it, and what is wrong with it.
type submittedColumns struct {
	to, kinds []string
	existing  string
	err       error
}

// columns shows the mapping of the file that waits.
func (v importView) columns(r *request) error {
	info, st, err := v.objects.writable(r)
	if err != nil {
		return err
	}
	up, _ := v.uploads.Of(r.Session.User.UUID, info.Name)
	if up == nil {
		return r.Redirect(pathOf("objects", info.Name, "import", "file"), "Choose a file first.")
	}
	return v.showColumns(r, info, st, up, submittedColumns{existing: bulk.Skip})
}

func (v importView) showColumns(r *request, info StoreInfo, st *store.Store, up *bulk.Upload,
	sent submittedColumns) error {
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	page, err := st.List(ctx, store.ListOptions{Limit: listPage, MaxBytes: maxListBytes})
	if err != nil {
		return err
	}
	rows, err := v.uploads.Samples(up, maxImportSamples)
	if err != nil {
		return err
	}
	p := columnsPage{Store: info, Upload: up, Targets: importable(info, st, page.Objects), Existing: sent.existing}
	if up.Format == table.CSV && len(up.Columns) <= maxKinds {
		p.Kinds = importKinds
	}
	p.Columns = p.guess(st)
	for i := range p.Columns {
		c := &p.Columns[i]
		if len(sent.to) == len(up.Columns) {
			c.To = sent.to[i]
		}
		if len(sent.kinds) == len(up.Columns) {
			c.Kind = table.Kind(sent.kinds[i])
		}
		p.Named = p.Named || c.To == table.UUID
		of := table.Column{Index: i, Name: c.Name}
		for _, row := range rows {
			c.Samples = append(c.Samples, shorten(of.Sample(row), maxCell/2))
		}
	}
	status := http.StatusOK
	if sent.err != nil {
		r.RecordError(sent.err)
		status = problem.Of(errs.KindOf(sent.err)).Status
		p.Problem, p.Fields = messageOf(sent.err)
	}
	return r.page(status, "objects_columns", "Import into "+info.Name, p)
}

// guess returns the columns of a file with the fields that they seem to be for. A column of another
// name is imported under it where names are those of fields: in JSON, in an export, which has uuids, and where no
// schema says which fields there are.
func (p *columnsPage) guess(st *store.Store) []importColumn {
	known := append([]string{table.UUID}, p.Targets...)
	named := p.Upload.Format == table.JSON || len(typesOf(st)) == 0 || slices.Contains(p.Upload.Columns, table.UUID)
	taken := map[string]bool{}
	all := make([]importColumn, len(p.Upload.Columns))
	for i, name := range p.Upload.Columns {
		kept := name != "" && name != table.UUID && !bulk.Importable(st, name)
		all[i] = importColumn{Number: i + 1, Name: name, Kept: kept}
		if slices.Contains(known, name) {
			all[i].To, taken[name] = name, true
		}
	}
	for i := range all {
		c := &all[i]
		if c.To != "" || c.Kept {
			continue
		}
		at := slices.IndexFunc(known, func(k string) bool { return alike(k, c.Name) && !taken[k] })
		switch {
		case at >= 0:
			c.To = known[at]
		case named && object.ValidProperty(c.Name):
			c.To = c.Name
		}
		taken[c.To] = true
	}
	return all
}

// alike reports whether two names differ only in case, spaces and punctuation.
func alike(a, b string) bool {
	letters := func(text string) string {
		return strings.Map(func(c rune) rune {
			if unicode.IsLetter(c) || unicode.IsNumber(c) {
				return unicode.ToLower(c)
			}
			return -1
		}, text)
	}
	a = letters(a)
	return a != "" && a == letters(b)
}

// mapping returns the mapping that a form has sent: for each column of the file the field, "" for none, and the kind of
// its cells. Its error has the violations at the columns.
func (v importView) mapping(info StoreInfo, st *store.Store, up *bulk.Upload,
	to, kinds []string) (table.Mapping, error) {
	if len(to) != len(up.Columns) || len(kinds) > 0 && len(kinds) != len(up.Columns) {
		return nil, errs.New(errs.Invalid, "the form is not about this file: map its columns again")
	}
	bad := &errs.Error{Kind: errs.Invalid, Message: "the columns can't be imported like this"}
	refuse := func(i int, message string) {
		bad.Fields = append(bad.Fields, errs.Field{Pointer: object.Pointer(columnName(up, i)), Message: message})
	}
	facts := v.objects.facts(info.Name, st)
	var all table.Mapping
	for i, field := range to {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		var kind table.Kind
		if len(kinds) > 0 {
			kind = table.Kind(kinds[i])
		}
		if kind == "" {
			kind = kindOfField(typesOf(st)[field], facts[field])
		}
		switch {
		case !slices.ContainsFunc(importKinds, func(k importKind) bool { return k.Value == kind }):
			refuse(i, "choose what its cells are")
		case slices.ContainsFunc(all, func(c table.Column) bool { return c.To == field }):
			refuse(i, "another column is imported into "+shorten(field, maxCell)+" already")
		case field != table.UUID && !bulk.Importable(st, field):
			refuse(i, "belfry keeps the field "+shorten(field, maxCell)+" itself: it can't be set")
		default:
			all = append(all, table.Column{Index: i, Name: up.Columns[i], To: field, Kind: kind})
		}
	}
	if len(bad.Fields) > 0 {
		return nil, bad
	}
	return all, nil
}

// columnName names a column of a file for people.
func columnName(up *bulk.Upload, i int) string {
	if up.Columns[i] == "" {
		return "a column without a name"
	}
	return up.Columns[i]
}

// kindOfField returns what the cells of a column are by the schema of the field.
func kindOfField(declared string, facts fieldFacts) table.Kind {
	switch {
	case facts.Input == form.DateTime:
		return table.Time
	case declared == "string":
		return table.Text
	case declared == "number" || declared == "integer":
		return table.Number
	case declared == "boolean":
		return table.Boolean
	case declared == "array" || declared == "object":
		return table.AsJSON
	}
	return table.Seen
}

package console

import (
	"errors"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/operations/table"
	"belfry/pkg/problem"
	"belfry/pkg/store"
)

// ImportPath is the path of the operation that imports files.
const ImportPath = "objects/import"

const (
	maxFileName = 200    // bytes of the name of a file that are shown
	fileInput   = "file" // of the forms after the first: the id of the file that they are about
)

// importView loads files into stores: a file is chosen, its columns are mapped, and a run checks or imports it.
type importView struct {
	objects *objectsView
	uploads *bulk.Uploads
	runs    Runs
}

func (v importView) routes() []route {
	if v.runs == nil || v.uploads == nil {
		return nil
	}
	const at = "/objects/:store/import"
	return []route{
		get(at+"/file", v.choose), limitedAs(httpkit.Upload, post(at+"/file", v.receive)),
		get(at+"/columns", v.columns), post(at+"/run", v.start), post(at+"/discard", v.discard),
		get(at, v.show), post(at+"/stop", v.stop), sendingFile(get(at+"/refused", v.refused)),
	}
}

// importForm is what the page to choose a file shows.
type importForm struct {
	Store     StoreInfo
	Upload    *bulk.Upload // that waits already; nil: none
	Separator string
	Most      int64 // bytes
	Columns   int
	Rows      int
	Problem   string
	Fields    []errs.Field
}

func (v importView) choose(r *request) error {
	info, _, err := v.objects.writable(r)
	if err != nil {
		return err
	}
	up, _ := v.uploads.Of(r.Session.User.UUID, info.Name)
	return v.showForm(r, http.StatusOK, importForm{Store: info, Upload: up})
}

func (v importView) showForm(r *request, status int, f importForm) error {
	f.Most, f.Columns, f.Rows = bulk.MaxUpload, table.MaxColumns, table.MaxRows
	return r.page(status, "objects_import", "Import into "+f.Store.Name, f)
}

// separators are the choices of a form.
var separators = map[string]rune{"": 0, "comma": ',', "semicolon": ';', "tab": '\t'}

// receive keeps the file of a form, which comes after its other fields.
func (v importView) receive(r *request) error {
	info, _, err := v.objects.writable(r)
	if err != nil {
		return err
	}
	httpkit.Reads(r.Context()) // nothing is written: a run does that
	form, err := r.upload()
	if err != nil {
		return err
	}
	f := importForm{Store: info}
	up, err := v.read(r, form, &f)
	if err != nil {
		r.CloseConnection()
		if !isCorrectable(err) {
			return err
		}
		r.RecordError(err)
		f.Problem, f.Fields = messageOf(err)
		return v.showForm(r, problem.Of(errs.KindOf(err)).Status, f)
	}
	ctx, err := r.Call()
	if err == nil {
		_, err = r.renew(ctx)
	}
	if err != nil {
		v.uploads.Remove(r.Session.User.UUID, up.ID)
		return err
	}
	r.Log(slog.LevelInfo, "a file for an import was received in the console", slog.String("store", info.Name),
		slog.Int64("bytes", up.Size), slog.Int64("rows", up.Rows), slog.String("actor", r.Session.User.UUID))
	return r.Redirect(pathOf("objects", info.Name, "import", "columns"), "")
}

// read reads the parts of a form up to its file.
func (v importView) read(r *request, form *multipart.Reader, f *importForm) (*bulk.Upload, error) {
	part, err := form.NextPart()
	if err == nil && part.FormName() == "separator" {
		text, failed := io.ReadAll(io.LimitReader(part, 20))
		if failed != nil {
			return nil, httpkit.BodyError(failed, 0)
		}
		f.Separator = string(text)
		part, err = form.NextPart()
	}
	if httpkit.IsCutOff(err) {
		return nil, err
	}
	separator, known := separators[f.Separator]
	if err != nil || part.FormName() != "file" || part.FileName() == "" || !known {
		return nil, errs.New(errs.Invalid, "choose a file first")
	}
	name := httpkit.Truncate(legible(part.FileName()), maxFileName)
	up, err := v.uploads.Add(r.Session.User.UUID, f.Store.Name, name, separator, part)
	if typed := (*errs.Error)(nil); err != nil && !errors.As(err, &typed) {
		err = httpkit.BodyError(err, 1)
	}
	return up, err
}

// start starts a run that checks or imports the file.
func (v importView) start(r *request) error {
	info, st, err := v.objects.writable(r)
	if err != nil {
		return err
	}
	form, _, err := r.Submitted()
	if err != nil {
		return err
	}
	q := bulk.ImportRequest{Store: info.Name, Existing: form.Get("existing"), Dry: form.Get("step") != "import",
		Actor: r.Session.User.UUID}
	up, mapping := v.uploads.Of(q.Actor, info.Name)
	if up == nil {
		return v.showForm(r, http.StatusConflict, importForm{Store: info,
			Problem: "The file is no longer here: it has been imported, removed or replaced, or another process of " +
				"belfry has received it. Choose it again."})
	}
	q.File, q.Name = up.ID, up.Name
	if form.Get(fileInput) != up.ID {
		return v.showOther(r, info, st, up)
	}
	if form.Has("to") {
		mapping, err = v.mapping(info, st, up, form["to"], form["kind"])
	}
	switch {
	case err != nil:
	case len(mapping) == 0:
		err = errs.New(errs.Invalid, "choose fields for the columns first")
	case q.Existing != bulk.Skip && q.Existing != bulk.Replace:
		err = errs.New(errs.Invalid, "choose what is to be done with objects that exist")
	default:
		v.uploads.Map(up, mapping)
		var fields map[string][]string
		if fields, err = formOf(q); err == nil {
			err = v.runs.Start(r.Context(), r.name(), r.ID, fields)
		}
	}
	if kind := errs.KindOf(err); err != nil && (kind == errs.Invalid || kind == errs.Conflict) {
		return v.showColumns(r, info, st, up, submittedColumns{form["to"], form["kind"], q.Existing, err})
	}
	if err != nil {
		return err
	}
	r.Log(slog.LevelInfo, "an import was started in the console", slog.String("store", info.Name),
		slog.Bool("dry", q.Dry), slog.String("existing", q.Existing), slog.String("actor", q.Actor))
	return r.Redirect(pathOf("objects", info.Name, "import"), "")
}

// showOther shows the mapping of the file that waits in place of the one that a page is about: the admin has chosen it
// since, in another window.
func (v importView) showOther(r *request, info StoreInfo, st *store.Store, up *bulk.Upload) error {
	return v.showColumns(r, info, st, up, submittedColumns{existing: bulk.Skip, err: errs.New(errs.Conflict,
		"another file has been chosen since the page was shown: map the columns of this one")})
}

// discard removes the file.
func (v importView) discard(r *request) error {
	info, st, err := v.objects.writable(r)
	if err != nil {
		return err
	}
	form, err := r.Form()
	if err != nil {
		return err
	}
	if up, _ := v.uploads.Of(r.Session.User.UUID, info.Name); up != nil {
		if form.Get(fileInput) != up.ID {
			return v.showOther(r, info, st, up)
		}
		v.uploads.Remove(r.Session.User.UUID, up.ID)
	}
	return r.Redirect(pathOf("objects", info.Name), "The file has been removed. Nothing was imported.")
}

// show shows the run that is in progress, or the last one.
func (v importView) show(r *request) error {
	info, last, of, err := v.last(r)
	if err != nil {
		return err
	}
	p := &bulkRun{Store: info, Back: "import", Run: last, Import: of}
	if last != nil {
		p.Of.Store, p.Report = p.Import.Store, reportOf(last)
		if p.Import.Store != info.Name {
			p.Elsewhere, p.Report = p.Import.Store, bulk.Report{}
		}
		up, mapping := v.uploads.Of(r.Session.User.UUID, info.Name)
		p.Waits = up != nil && up.ID == p.Import.File && len(mapping) > 0
		p.Listed = v.uploads.HasRefused(p.Import.File)
	}
	return r.showRun("Import into "+info.Name, p)
}

// last returns the run that is in progress, or the last one, nil for none, and what it imports.
func (v importView) last(r *request) (info StoreInfo, last *Run, of bulk.ImportRequest, err error) {
	if info, _, err = v.objects.writable(r); err != nil {
		return info, nil, of, err
	}
	if last, err = v.runs.Last(r.Context()); err == nil && last != nil {
		of, _ = last.In.(bulk.ImportRequest)
	}
	return info, last, of, err
}

func (v importView) stop(r *request) error { return v.objects.stopRun(r, v.runs, "import") }

// refused sends what the last run has refused, to be saved.
func (v importView) refused(r *request) error {
	info, _, of, err := v.last(r)
	if err != nil {
		return err
	}
	if of.Store != info.Name || !v.uploads.HasRefused(of.File) {
		return notFound("this process has no list of what the last import into %s has refused: the page of the run "+
			"has the first of it", info.Name)
	}
	r.sendsFile(exportTypes["csv"], info.Name+"-refused.csv")
	r.WriteHeader(http.StatusOK)
	if r.Request.Method == http.MethodHead {
		return nil
	}
	if _, err := v.uploads.Refused(of.File, r.Exchange); err != nil {
		r.RecordError(err)
	}
	return nil
}

// importable returns the fields that an import can set, of those that a list offers.
func importable(info StoreInfo, st *store.Store, rows []store.Stored) []string {
	return slices.DeleteFunc(offered(info, st, rows, maxOffered),
		func(name string) bool { return !bulk.Importable(st, name) })
}

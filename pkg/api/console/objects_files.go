package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// fileList is the files of a property of an object.
type fileList struct {
	Property, Service string
	Accept            string // media types that can be added; "" for all
	MaxSize           int64  // bytes of a file that is added; 0 if only the storage limits it
	Records           []binary.Record
	Shown             []shownFile // the same, for a page
}

// filesOf returns the files of an object by property: those that it has, and those that it may have.
func (v *objectsView) filesOf(info StoreInfo, st *store.Store, o store.Stored) ([]fileList, error) {
	decoded, err := o.Object()
	if err != nil {
		return nil, err
	}
	var all []fileList
	for _, service := range v.files {
		for _, property := range service.Properties(info.Name) {
			if st.Rules().Hidden(property) {
				continue
			}
			limits := service.Limits(info.Name, property)
			f := fileList{Property: property, Service: service.Name(), Accept: strings.Join(limits.Types, ", "),
				MaxSize: limits.MaxSize}
			if records := decoded[property]; records != nil {
				if err := json.Unmarshal(records, &f.Records); err != nil {
					return nil, errs.Wrap(err, errs.Internal, "the records of %s of %s", property, o.UUID)
				}
			}
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b fileList) int { return strings.Compare(a.Property, b.Property) })
	return all, nil
}

// file returns the service and the place of a file that the path names. Without an index it is a new file.
func (v *objectsView) file(r *request, index bool) (*binary.Service, binary.Place, error) {
	info, st, err := v.store(r)
	if err != nil {
		return nil, binary.Place{}, err
	}
	p := binary.Place{Store: info.Name, Index: binary.Append}
	if p.UUID, err = r.UUID(); err != nil {
		return nil, p, err
	}
	if p.Property, err = r.PathParam("property"); err != nil {
		return nil, p, err
	}
	if index {
		text, err := r.PathParam("index")
		if err != nil {
			return nil, p, err
		}
		if p.Index, err = strconv.Atoi(text); err != nil || p.Index < 0 {
			return nil, p, notFound("there is no file %s", httpkit.Truncate(text, 20))
		}
	}
	for _, service := range v.files {
		if slices.Contains(service.Properties(info.Name), p.Property) && !st.Rules().Hidden(p.Property) {
			return service, p, nil
		}
	}
	return nil, p, notFound("%s has no files %s", info.Name, httpkit.Truncate(p.Property, 100))
}

// filePolicy is the Content-Security-Policy of a file. It is saved, not shown. A browser that shows it anyway gives it
// an origin of its own, without scripts.
const filePolicy = "default-src 'none'; sandbox"

// transferTime is how long a file may take to be sent or to arrive.
const transferTime = 30 * time.Minute

// download sends a file, to be saved.
func (v *objectsView) download(r *request) error {
	service, place, err := v.file(r, true)
	if err != nil {
		return err
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	record, err := service.Get(ctx, place)
	if err != nil {
		return err
	}
	content, err := service.Open(ctx, record.Hash, 0, -1)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // what has been read is checked by then
	r.sendsFile("application/octet-stream", cmp.Or(record.Name, record.Hash[:min(len(record.Hash), 12)]))
	r.SetHeader("Content-Length", strconv.FormatInt(record.Size, 10))
	// If the connection does not support deadlines, the server's deadline applies.
	_ = http.NewResponseController(r.Exchange).SetWriteDeadline(time.Now().Add(transferTime))
	r.WriteHeader(http.StatusOK)
	if r.Request.Method == http.MethodHead {
		return nil
	}
	httpkit.Reads(r.Context())
	if _, err := io.Copy(r.Exchange, content); err != nil {
		r.RecordError(err)
	}
	return nil
}

// sendsFile sets the headers of a file that a browser saves.
func (r *request) sendsFile(kind, name string) {
	r.SetHeader("Content-Security-Policy", filePolicy)
	r.SetHeader("Content-Type", kind)
	r.SetHeader("Content-Disposition",
		cmp.Or(mime.FormatMediaType("attachment", map[string]string{"filename": name}), "attachment"))
}

// upload adds the file of a form to a property.
func (v *objectsView) upload(r *request) error {
	service, place, err := v.file(r, false)
	if err != nil {
		return err
	}
	httpkit.Reads(r.Context()) // the service writes with the configuration that is served when the content has arrived
	form, err := r.upload()
	if err != nil {
		return err
	}
	part, err := form.NextPart()
	if httpkit.IsCutOff(err) {
		return err
	}
	if err != nil || part.FormName() != "file" || part.FileName() == "" {
		r.CloseConnection()
		return errs.New(errs.Invalid, "choose a file first")
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	kind := part.Header.Get("Content-Type")
	if _, _, err := httpkit.ParseMediaType(kind); err != nil || len(kind) > binary.MaxMimetype {
		kind = "application/octet-stream"
	}
	_, err = service.Put(ctx, binary.Upload{
		Place: place, Body: part, Size: -1, Name: part.FileName(), Mimetype: kind, Metadata: object.Object{},
		Reauthorize: r.renew,
	})
	if err != nil {
		r.CloseConnection()
		return err
	}
	return r.Redirect(pathOf("objects", place.Store, "object", place.UUID), "The file has been added.")
}

// renew returns the context of a request that has taken long, after it has checked that the user is still an admin.
func (r *request) renew(ctx context.Context) (context.Context, error) {
	session, err := r.console.calls.Reauthenticate(r.Exchange)
	if err != nil {
		return nil, err
	}
	if session == nil || session.ID != r.Session.ID || !r.console.service.Sessions.IsAdmin(r.Context(), session) {
		return nil, errs.New(errs.Denied, "your session ended during the upload, or you are no longer an admin")
	}
	call := store.CallOf(ctx)
	call.User, call.Actor = session.Visible, nil
	return store.WithCall(ctx, call), nil
}

// deleteFile removes a file, named by its place and its hash.
func (v *objectsView) deleteFile(r *request) error {
	service, place, err := v.file(r, true)
	if err != nil {
		return err
	}
	form, ctx, err := r.Submitted()
	if err != nil {
		return err
	}
	_, err = service.Delete(ctx, place, form.Get("hash"))
	if errors.Is(err, errs.Mismatch) {
		err = errs.Wrap(err, errs.Mismatch, "the file at this place was replaced: open the object again")
	}
	if err != nil {
		return err
	}
	return r.Redirect(pathOf("objects", place.Store, "object", place.UUID), "The file has been removed.")
}

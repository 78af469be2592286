package console

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"belfry/pkg/account/admin"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/problem"
	"belfry/pkg/store"
)

// asView shows admins what another user may read: the lists and objects that the API would return to the user. None of
// its routes writes an object, and there is no session of the user.
type asView struct {
	users   *usersView
	objects *Objects
}

func (v asView) routes() []route {
	if !v.users.Impersonation || v.objects == nil {
		return nil
	}
	const as = "/users/:" + httpkit.UUIDParam + "/as"
	return []route{
		post(as, v.begin), post(as+"/end", v.end),
		get(as, v.stores),
		limitedAs(httpkit.List, get(as+"/:store", v.list)),
		get(as+"/:store/:object", v.object),
	}
}

// asUser is the user of a page, as whom the admin sees.
type asUser struct {
	UUID, Name string
	Until      string // when it ends by itself
}

// asReply is what the API would answer instead of what was asked for.
type asReply struct {
	Status int // 0: it answers with what was asked for
	Title  string
	Detail string
	Fields []errs.Field
}

func (v asView) begin(r *request) error {
	ctx, uuid, err := r.CallAbout()
	if err != nil {
		return err
	}
	if err := v.users.Accounts.Impersonate(ctx, r.Session, uuid); err != nil {
		return err
	}
	r.Log(slog.LevelInfo, "an admin sees as a user in the console", slog.String("user", uuid),
		slog.String("actor", r.Session.User.UUID))
	return r.Redirect(asPath(uuid), "")
}

func (v asView) end(r *request) error {
	ctx, uuid, err := r.CallAbout()
	if err == nil {
		err = v.users.Accounts.EndImpersonation(ctx, r.Session)
	}
	if err != nil {
		return err
	}
	return r.Redirect(pathOf("users", uuid), "You no longer see as this user.")
}

// asPath returns the path of a page that shows what a user may read.
func asPath(uuid string, segments ...string) string {
	return pathOf(append([]string{"users", uuid, "as"}, segments...)...)
}

// as calls a handler of a page with what the user may read. Without an impersonation it leads to the page of the user,
// where one begins.
func (v asView) as(r *request, show func(ctx context.Context, user asUser) error) error {
	ctx, uuid, err := r.CallAbout()
	if err != nil {
		return err
	}
	i, err := v.users.Accounts.Impersonated(ctx, r.Session, uuid)
	if errors.Is(err, admin.ErrNotImpersonating) {
		return r.Redirect(pathOf("users", uuid), "You do not see as this user, or the time is over: begin here.")
	}
	if err != nil {
		return err
	}
	name := nameOf(v.users.names.stores[v.users.Store], i.User.Body)
	return show(i.Context(ctx, r.Session), asUser{uuid, name, i.Until.UTC().Format(time.RFC3339)})
}

// stores shows the stores that the API has.
func (v asView) stores(r *request) error {
	return v.as(r, func(_ context.Context, user asUser) error {
		p := struct {
			As     asUser
			Stores []StoreInfo
		}{As: user}
		for _, info := range v.objects.Stores {
			if info.URL != "" {
				p.Stores = append(p.Stores, info)
			}
		}
		return r.Page("users_as", "As the user sees it", p)
	})
}

// exposed returns the store that a path names, if the API has it.
func (v asView) exposed(r *request) (StoreInfo, *store.Store, error) {
	name, err := r.PathParam("store")
	if err != nil {
		return StoreInfo{}, nil, err
	}
	info, st := storeNamed(v.objects.Stores, v.objects.Set, name)
	if st == nil || info.URL == "" {
		return StoreInfo{}, nil, notFound("the API has no store %s",
			httpkit.Truncate(strings.ToValidUTF8(name, ""), 100))
	}
	return info, st, nil
}

// asList is the data of a list as the user sees it.
type asList struct {
	As                  asUser
	Store               StoreInfo
	Words, Filter, Sort string
	Columns             []string
	Rows                []asRow
	First, Next         string // URLs of other pages; "" for none
	Warning             string
	Reply               asReply
}

type asRow struct {
	UUID, Name string
	Cells      []gridCell
}

func (v asView) list(r *request) error {
	return v.as(r, func(ctx context.Context, user asUser) error {
		info, st, err := v.exposed(r)
		if err != nil {
			return err
		}
		l := asList{As: user, Store: info, Words: strings.TrimSpace(r.Query("q")),
			Filter: strings.TrimSpace(r.Query("filter")), Sort: strings.TrimSpace(r.Query("sort"))}
		if at := r.Query("object"); at != "" {
			r.seeOther(asPath(user.UUID, info.Name, strings.TrimSpace(at)))
			return nil
		}
		if !info.List {
			l.Reply = notOffered()
			return r.Page("users_as_list", info.Name, l)
		}
		page, err := st.List(ctx, store.ListOptions{Words: l.Words, Filter: l.Filter, Sort: l.Sort, Limit: listPage,
			Cursor: r.Query("cursor"), MaxBytes: maxListBytes, MaxKeys: maxListKeys, MaxReads: maxListReads})
		if l.Reply, err = replyOf(r, err); err != nil {
			return err
		}
		l.show(page, st)
		if r.Query("cursor") != "" {
			l.First = l.url("")
		}
		if page.Next != "" {
			l.Next = l.url(page.Next)
		}
		return r.Page("users_as_list", info.Name, l)
	})
}

// show adds the objects of a page.
func (l *asList) show(page store.List, st *store.Store) {
	l.Columns, l.Warning = usual(l.Store, st, page.Objects), page.Warning
	for _, o := range page.Objects {
		row := asRow{UUID: o.UUID, Name: nameOf(l.Store, o.Body)}
		for _, name := range l.Columns {
			row.Cells = append(row.Cells, cellOf(name, valueAt(o.Body, name)))
		}
		l.Rows = append(l.Rows, row)
	}
}

func (l *asList) url(cursor string) string {
	return withQuery(asPath(l.As.UUID, l.Store.Name),
		parameters("q", l.Words, "filter", l.Filter, "sort", l.Sort, "cursor", cursor))
}

func (v asView) object(r *request) error {
	return v.as(r, func(ctx context.Context, user asUser) error {
		info, st, err := v.exposed(r)
		if err != nil {
			return err
		}
		uuid, err := r.PathParam("object")
		if err == nil {
			err = object.CheckUUID(uuid)
		}
		if err != nil {
			return err
		}
		p := struct {
			As         asUser
			Store      StoreInfo
			UUID, Name string
			Text       string
			Reply      asReply
		}{As: user, Store: info, UUID: uuid}
		if !info.Get {
			p.Reply = notOffered()
			return r.Page("users_as_object", uuid, p)
		}
		shown, err := st.Get(ctx, uuid)
		if p.Reply, err = replyOf(r, err); err != nil {
			return err
		}
		if p.Reply.Status == 0 {
			p.Name, p.Text = nameOf(info, shown.Body), readable(shown.Body, maxKept)
		}
		return r.Page("users_as_object", uuid, p)
	})
}

// notOffered is the reply of an operation that has no route.
func notOffered() asReply {
	name := problem.Of(errs.NotFound)
	return asReply{Status: name.Status, Title: name.Title, Detail: "the configuration has no such route for the store"}
}

// replyOf returns the reply of the API to a read that fails because of the user or the request. Any other error is one
// of the console.
func replyOf(r *request, err error) (asReply, error) {
	kind := errs.KindOf(err)
	refusals := []errs.Kind{errs.Denied, errs.NotFound, errs.Invalid, errs.Unauthenticated}
	if err == nil || !slices.Contains(refusals, kind) {
		return asReply{}, err
	}
	r.RecordError(err)
	name := problem.Of(kind)
	detail, fields := messageOf(err)
	return asReply{name.Status, name.Title, detail, fields}, nil
}

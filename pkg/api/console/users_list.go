package console

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

const (
	usersPage = 50  // users of a page
	keysPage  = 50  // API keys of a page
	maxName   = 100 // bytes of a name that is shown
)

// userRow is a row of the list.
type userRow struct {
	admin.Account
	Name, Created, LastLogin string
	Logins                   []userLogin
	Cells                    []gridCell // of the columns
}

// userLogin is a way in which a user logs in.
type userLogin struct {
	Text      string // an address, or the name of a provider
	Address   bool
	Validated bool
}

// userList is the data of the list.
type userList struct {
	Query   string
	Problem string // why nothing can be looked for; "" if it can
	Rows    []userRow
	Next    string   // the URL of the next page; "" for none
	First   string   // that of the first one; "" if this is it
	Columns []string // the user store's own fields that are shown
	Chosen  []string // those that were chosen; nil: the usual ones
	Offered []string // that can be shown
}

// Shows reports whether a field is a column.
func (l *userList) Shows(name string) bool { return slices.Contains(l.Columns, name) }

// list shows a page of users: all, or those that are found. A search for a whole address or uuid redirects to the user.
func (v *usersView) list(r *request) error {
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	l := userList{Query: strings.TrimSpace(r.Query("q"))}
	var exact *admin.Account
	if l.Query != "" && r.Query("after") == "" {
		switch user, err := v.Accounts.FindUser(ctx, l.Query); errs.KindOf(err) {
		case errs.NotFound, errs.Denied:
		default:
			if err != nil {
				return err
			}
			if !r.Partial() && strings.Contains(l.Query, "@") {
				r.seeOther(pathOf("users", user.UUID))
				return nil
			}
			// Somebody is typing, and the page stays; or others have the uuid in their names.
			a, err := v.Accounts.AccountDetails(ctx, user)
			if err != nil {
				return err
			}
			exact = &a
		}
	}
	page, next, err := v.page(ctx, l.Query, r.Query("after"), exact)
	if exact != nil && err == nil && next == "" && len(page) == 1 && !r.Partial() {
		r.seeOther(pathOf("users", exact.UUID))
		return nil
	}
	status := http.StatusOK
	if e := (*errs.Error)(nil); errors.Is(err, admin.ErrTooShort) && errors.As(err, &e) {
		l.Problem, status, err = e.Message, http.StatusBadRequest, nil
	}
	if err != nil {
		return err
	}
	v.fill(&l, r.Exchange.Query()["cols"], page)
	if next != "" {
		l.Next = l.url(next)
	}
	if r.Query("after") != "" {
		l.First = l.url("")
	}
	if r.Partial() {
		return r.Fragment("users", "found", &l)
	}
	return r.page(status, "users", usersTitle, &l)
}

// page returns a page of users, and where the next one begins. exact is the user whom the query names as a whole; nil:
// none.
func (v *usersView) page(ctx context.Context, query, after string, exact *admin.Account) (page []admin.Account,
	next string, err error) {
	switch {
	case exact != nil:
		page, next, err = v.Accounts.Search(ctx, query, after, usersPage)
		if errors.Is(err, admin.ErrTooShort) {
			page, next, err = nil, "", nil
		}
		page = slices.DeleteFunc(page, func(a admin.Account) bool { return a.UUID == exact.UUID })
		return slices.Insert(page, 0, *exact), next, err
	case query != "":
		return v.Accounts.Search(ctx, query, after, usersPage)
	}
	at, err := base64.RawURLEncoding.DecodeString(after)
	if err != nil {
		return nil, "", errs.New(errs.Invalid, "after: invalid; start again without it")
	}
	if after == "" {
		at = nil
	}
	page, more, err := v.Accounts.List(ctx, at, usersPage)
	return page, base64.RawURLEncoding.EncodeToString(more), err
}

// url returns the URL of a page of the list.
func (l *userList) url(after string) string {
	query := url.Values{}
	for name, value := range map[string]string{"q": l.Query, "after": after} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if len(l.Chosen) > 0 {
		query["cols"] = l.Chosen
	}
	if len(query) == 0 {
		return pathOf("users")
	}
	return pathOf("users") + "?" + query.Encode()
}

// UsualURL returns the URL of the list with the usual columns.
func (l *userList) UsualURL() string { return (&userList{Query: l.Query}).url("") }

// fill adds users, with columns of fields.
func (v *usersView) fill(l *userList, chosen []string, page []admin.Account) {
	info, shown := v.names.stores[v.Store]
	if shown {
		st, rows := v.names.set.Store(v.Store), make([]store.Stored, len(page))
		for i, a := range page {
			rows[i] = store.Stored{UUID: a.UUID, Body: a.User}
		}
		l.Offered = v.own(info, offered(info, st, rows, maxOffered))
		if l.Chosen = v.own(info, chosenColumns(st, chosen)); len(l.Chosen) > 0 {
			l.Columns = l.Chosen
		} else {
			l.Columns = v.own(info, usual(info, st, rows))
		}
	}
	for _, a := range page {
		row := v.rowOf(a)
		for _, name := range l.Columns {
			row.Cells = append(row.Cells, cellOf(name, valueAt(a.User, name)))
		}
		l.Rows = append(l.Rows, row)
	}
}

// own returns the fields that are not shown otherwise.
func (v *usersView) own(info StoreInfo, fields []string) []string {
	return slices.DeleteFunc(fields, func(name string) bool {
		switch name {
		case "admin", "disabled", "created", "updated", idents:
			return true
		}
		return slices.Contains(info.Title, name) || name == userNames[0]
	})
}

// rowOf returns a user as the list shows them.
func (v *usersView) rowOf(a admin.Account) userRow {
	row := userRow{Account: a}
	row.Name = nameIn(a.User)
	if v.names.users() == v.Store {
		row.Name = cmp.Or(nameOf(v.names.stores[v.Store], a.User), row.Name)
	}
	row.Name = cmp.Or(row.Name, firstOf(addressesOf(a)))
	row.Created, _ = object.Text(object.Field(a.User, "created"))
	for _, i := range a.Idents {
		row.LastLogin = max(row.LastLogin, i.LastUsed)
		login := userLogin{Text: i.Type, Validated: i.Validated}
		if address, is := strings.CutSuffix(i.UUID, "_"+record.Email); is && i.Type == record.Email {
			login.Text, login.Address = address, true
		}
		row.Logins = append(row.Logins, login)
	}
	slices.SortStableFunc(row.Logins, func(a, b userLogin) int {
		if a.Address == b.Address {
			return 0
		}
		if a.Address {
			return -1
		}
		return 1
	})
	return row
}

// loginsIn returns the idents of the array of a user.
func loginsIn(array []byte) (logins []string) {
	var idents []struct {
		UUID string `json:"uuid"`
	}
	_ = json.Unmarshal(array, &idents) // the field may be absent
	for _, i := range idents {
		logins = append(logins, i.UUID)
	}
	return logins
}

// nameIn returns the name that a user has.
func nameIn(user []byte) string {
	for _, field := range userNames {
		if text, ok := object.Text(object.Field(user, field)); ok && text != "" {
			return shorten(text, maxName)
		}
	}
	return ""
}

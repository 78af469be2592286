package console

import (
	"encoding/base64"
	"net/url"

	"belfry/pkg/account/keys"
	"belfry/pkg/errs"
)

// keyRow is a row of the list of all API keys.
type keyRow struct {
	keys.OfUser
	Of named // the user
}

// keyList is the data of the list of all API keys.
type keyList struct {
	Sort        keys.Order
	Rows        []keyRow
	First, Next string // URLs of other pages; "" for none
}

// objects implements showsObjects.
func (l *keyList) objects() (all []*named) {
	for i := range l.Rows {
		all = append(all, &l.Rows[i].Of)
	}
	return all
}

// allKeysPath is the path of the list of all API keys.
var allKeysPath = pathOf("users", "keys")

// listKeys shows a page of the API keys of all users.
func (v *usersView) listKeys(r *request) error {
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	l := keyList{Sort: keys.Order(r.Query("sort"))}
	if l.Sort == "" {
		l.Sort = keys.ByUse
	}
	var after []byte
	if at := r.Query("after"); at != "" {
		if after, err = base64.RawURLEncoding.DecodeString(at); err != nil {
			return errs.New(errs.Invalid, "after: invalid; start again without it")
		}
		l.First = l.url("")
	}
	page, next, err := v.Keys.All(ctx, l.Sort, after, keysPage)
	if err != nil {
		return err
	}
	for _, key := range page {
		l.Rows = append(l.Rows, keyRow{key, v.names.of(v.Store, key.User)})
	}
	if next != nil {
		l.Next = l.url(base64.RawURLEncoding.EncodeToString(next))
	}
	return r.Page("users_keys", "API keys", &l)
}

func (l *keyList) url(after string) string {
	query := url.Values{"sort": {string(l.Sort)}}
	if after != "" {
		query.Set("after", after)
	}
	return allKeysPath + "?" + query.Encode()
}

// endKey revokes an API key, on the page of its user or in the list of all.
func (v *usersView) endKey(r *request) error {
	ctx, user, form, err := v.sent(r)
	if err != nil {
		return err
	}
	id, err := r.PathParam("id")
	if err == nil {
		err = v.Accounts.EndKey(ctx, user.UUID, id)
	}
	if err != nil {
		return err
	}
	target := pathOf("users", user.UUID)
	if order := form.Get("sort"); order != "" {
		target = (&keyList{Sort: keys.Order(order)}).url("")
	}
	return r.Redirect(target, "The API key is revoked.")
}

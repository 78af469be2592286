package login

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"belfry/pkg/bus"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
)

// checkNoSecretLeaked stops belfry and checks that neither secrets of providers
// nor those that belfry sent to browsers are in its logs, events or stores.
func (w *fixture) checkNoSecretLeaked() {
	events := strings.Join(slices.Concat(w.replay(bus.StreamEvents, ">"), w.replay(bus.StreamDead, ">")), "\n")
	w.stop()
	if !strings.Contains(w.logs, "level=DEBUG") || !strings.Contains(events, `"Sessions"`) ||
		!strings.Contains(events, `"Tokens"`) {
		w.Error("there is nothing in which a secret could be found")
	}
	given := map[string]string{}
	for _, secret := range w.providers.Secrets() {
		given[secret] = "a secret of a provider"
	}
	handed, s := map[string]string{}, &w.secrets
	for secret, what := range s.known {
		given[secret] = what
		sum := sha256.Sum256([]byte(secret))
		handed[base64.RawURLEncoding.EncodeToString(sum[:])] = "the hash of " + what
	}
	kept := w.storedData()
	for where, text := range map[string]string{"the log": w.logs, "an event": events, "a reply": s.replies.String(),
		"a store": kept} {
		w.findSecrets(where, text, given)
		if where != "a store" { // which may hold hashes, hidden
			w.findSecrets(where, text, handed)
		}
	}
}

// findSecrets fails when a text contains secrets, verbatim or encoded as a
// query or JSON.
func (w *fixture) findSecrets(where, text string, secrets map[string]string) {
	w.Helper()
	for secret, what := range secrets {
		quoted, err := json.Marshal(secret)
		w.must(err)
		forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1 : len(quoted)-1])}
		slices.Sort(forms)
		forms = slices.Compact(forms)
		if i := slices.IndexFunc(forms,
			func(form string) bool { return form != "" && strings.Contains(text, form) }); i >= 0 {
			at := strings.Index(text, forms[i])
			w.Errorf("%s holds %s (%s): %s", where, what, forms[i], text[max(0, at-300):min(len(text), at+300)])
		}
	}
}

// storedData is everything in the stores, including hidden fields, while belfry
// is stopped; without the secret of an OAuth 1 flow in progress.
func (w *fixture) storedData() string {
	w.Helper()
	ctx := context.Background() // the test's has ended
	backend, err := filestore.Open(filepath.Join(w.folder, "data", "stores", "default"), filestore.Options{})
	w.must(err)
	defer func() { w.must(backend.Close()) }()
	var b strings.Builder
	for _, name := range []string{"Users", "Idents", "Sessions", "Tokens"} {
		s, err := backend.Open(ctx, driver.Spec{Name: name})
		w.must(err)
		page, err := s.Scan(ctx, nil, 10_000)
		w.must(err)
		if len(page.Next) > 0 || name == "Sessions" && len(page.Records) == 0 {
			w.Fatalf("%d records of %s", len(page.Records), name)
		}
		for _, r := range page.Records {
			o, err := object.Decode(r.Body)
			w.must(err)
			if kind, _ := o.Text("provider"); name == "Tokens" && kind == "twitter" {
				delete(o, "_secret")
			}
			fmt.Fprintln(&b, r.UUID, string(o.Encode()))
		}
		waiting, _, err := s.Pending(ctx, nil, 10_000)
		w.must(err)
		for _, e := range waiting {
			fmt.Fprintln(&b, string(e.Payload))
		}
	}
	return b.String()
}

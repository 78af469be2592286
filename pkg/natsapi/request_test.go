package natsapi

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"belfry/pkg/apimodel"
	"belfry/pkg/object"
	"belfry/pkg/op"
	"belfry/pkg/wire"
)

// requests are the operations on some store.
func requests() []op.Request {
	set := op.NewSet(&apimodel.Contract{Stores: []*apimodel.Store{{Name: "Books", Bus: true}}})
	Operations(set, nil)
	return set.Requests("Books")
}

// A floating point number has 53 bits: one more is another revision.
func TestARevisionKeepsAllItsDigits(t *testing.T) {
	all := requests()
	remove := &all[slices.IndexFunc(all, func(r op.Request) bool { return r.Op == wire.Delete })]
	for _, digits := range []string{"9007199254740993", "18446744073709551615"} {
		for _, text := range []string{digits, `"` + digits + `"`} {
			r, err := parse(remove, "id", &nats.Msg{Data: []byte(`{"uuid":"a","revision":` + text + `}`)})
			if err != nil || strconv.FormatUint(r.Revision, 10) != digits {
				t.Errorf("%s is read as %+v, %v", text, r, err)
			}
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(`{"object":{"uuid":"a","title":"x"},"uuid":"b"}`, "k", "ada")
	f.Add(`{"uuid":"a","revision":17}`, "", "")
	f.Add(`{"filter":"a == 1","sort":"a","limit":3,"cursor":"x"}`, "k\n", "..")
	f.Fuzz(func(t *testing.T, body, key, actor string) {
		for _, of := range requests() {
			r, err := parse(&of, "id",
				&nats.Msg{Data: []byte(body), Header: nats.Header{"idempotency-KEY": {key}, wire.HeaderActor: {actor}}})
			if err != nil {
				o := problemReply(err, "id")
				if o.status != 400 || o.text == "" || strings.ContainsAny(o.text, "\r\n\x00") ||
					len(o.text) > maxHeaderText {
					t.Errorf("%s %q: %+v, %v", of.Op, body, o, err)
				}
				continue
			}
			if r.UUID != "" && !object.ValidUUID(r.UUID) || !object.ValidUUID(r.actor) || of.Write && r.key != key {
				t.Errorf("%s %q became %+v", of.Op, body, r)
			}
		}
	})
}

package objects_test

import (
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
	"belfry/pkg/store/idempotent"
)

// A key of a few bytes has a reply of many, which is kept: above the limit a new key is refused before its write.
func TestKeysAreRefusedAboveWhatIsKept(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, func(o *idempotent.Options) { o.Kept = idempotent.NewKept(100_000, nil) })
	f.Do("POST", "/books", `{"uuid":"large","text":"`+strings.Repeat("x", 30_000)+`"}`).Want(201)
	put := func(i int) apitest.Reply {
		return f.Do("PUT", "/books/large", fmt.Sprintf(`{"n":%d}`, i), "Idempotency-Key", fmt.Sprint("key-", i))
	}
	refused := 0
	for i := range 10 {
		if r := put(i); r.StatusCode == 429 {
			if refused++; r.Header.Get("Retry-After") == "" {
				t.Errorf("%v", r.Header)
			}
			if now := f.Do("GET", "/books/large", "").Want(200); !strings.HasPrefix(now.Text, "{") ||
				!strings.Contains(now.Text, `"n":3`) {
				t.Error("a request that is refused has written")
			}
		} else {
			r.Want(200)
		}
	}
	if refused != 6 {
		t.Errorf("%d of 10 keys are refused", refused)
	}
	if r := put(0).Want(200); r.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("a repetition is no repetition")
	}
	f.Do("PUT", "/books/large", `{"n":17}`).Want(200)
}

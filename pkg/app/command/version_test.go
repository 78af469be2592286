package command_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"belfry/pkg/app/command"
	"belfry/pkg/app/hold"
)

// A command of one version and a process of another may not understand each other. The error says so: an empty one, or
// a page that is not found, would not.
func TestACommandOfAnotherVersionSaysSo(t *testing.T) {
	for name, reply := range map[string]http.HandlerFunc{
		"a report of another form": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"progress":{"objects":3}}` + "\n" + `{"report":{"mappings":1}}` + "\n"))
		},
		"an error of another form": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"error":"a store can't be read"}` + "\n"))
		},
		"a request that is not known": http.NotFound,
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(reply)
			defer server.Close()
			_, err := command.Verify.Ask(t.Context(),
				hold.Holder{PID: 7, Doing: hold.DoingServe, Control: server.URL}, command.VerifyRequest{})
			if err == nil || !strings.Contains(err.Error(), "belfry serve, process 7") ||
				!strings.Contains(err.Error(), "use the command of the version that serves") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

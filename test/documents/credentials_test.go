package documents

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var inPath = regexp.MustCompile(`\{[a-z]+\}`)

// Whatever credentials a request has, the document has its reply: for every operation, with none, with a token that is
// no token, and with an API key whose rule allows nothing else.
func TestRepliesToAllCredentialsConformToTheDocument(t *testing.T) {
	s := serve(t, everything)
	const form = "application/x-www-form-urlencoded"
	c := newClient(t, s)
	serveInterceptor(t, connect(t, s))
	c.enter("ada@example.com")
	c.ask(201, "POST", "/auth/keys", `{"name":"narrow","password":"correct horse","rule":"path == '/nothing'"}`)
	key := c.last.text(t, "token")
	c.cookie = ""
	met := map[string][]int{}
	for path, item := range c.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			body, media := "", ""
			if operation.RequestBody != nil {
				body, media = "{}", "application/json"
				if content := operation.RequestBody.Value.Content; content[media] == nil && content[form] != nil {
					body, media = "a=b", form // of browsers alone
				}
			}
			for name, credentials := range map[string][]string{"nobody": nil, "wrong": {"Authorization: Bearer wrong"},
				"key": {"Authorization: Bearer " + key}} {
				c.send(method, inPath.ReplaceAllString(path, "1"), body, append(credentials, "Content-Type: "+media)...)
				met[name] = append(met[name], c.last.StatusCode)
				scope := strings.Contains(c.last.Header.Get("Www-Authenticate"), "insufficient_scope")
				if name == "key" && scope != (c.last.StatusCode == 403) {
					t.Errorf("%s %s by the key: %s with %v", method, path, c.last.Status, c.last.Header)
				}
			}
		}
	}
	if !slices.Contains(met["wrong"], 401) || !slices.Contains(met["key"], 403) ||
		!slices.Contains(met["nobody"], 200) {
		t.Errorf("the statuses are %v", met)
	}
}

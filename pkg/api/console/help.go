package console

import "fmt"

// help has the page of the documentation for each part of the console: by the name of the view, or of what a field is about. Templates
// link to them by the function help.
var help = map[string]string{
	"":        "guides/console",
	"objects": "guides/model-data",
	"map":     "guides/copies",
	"live":    "guides/live",
	"workers": "guides/listeners",
	"verify":  "guides/copies",
	"schemas": "guides/change-model",
	"backup":  "guides/back-up",
	"users":   "guides/manage-users",
	"mails":   "guides/log-in",
	"system":  "guides/monitor",
	"api":     "reference/api-documents",

	"rules":          "reference/rules",
	"schema":         "reference/schemas",
	"lists":          "reference/lists",
	"search":         "guides/search",
	"events":         "reference/events",
	"configuration":  "reference/configuration",
	"second-factors": "guides/second-factors",
	"back-up":        "guides/back-up",
}

// helpAt returns the path of the page for a part of the console.
func helpAt(topic string) (string, error) {
	page, ok := help[topic]
	if !ok {
		return "", fmt.Errorf("there is no help for %s", topic)
	}
	return docsAt(page), nil
}

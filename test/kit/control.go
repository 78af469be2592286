package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// Control makes a GET request to the control server of the belfry that serves a data folder. The caller closes the
// body.
func Control(ctx context.Context, data, path string) (*http.Response, error) {
	text, err := os.ReadFile(filepath.Join(data, "belfry.lock"))
	if err != nil {
		return nil, err
	}
	var holder struct{ Control, Token string }
	if err := json.Unmarshal(text, &holder); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, holder.Control+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+holder.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, fmt.Errorf("GET %s: %s", path, res.Status)
	}
	return res, nil
}

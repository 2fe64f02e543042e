package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"sync"
	"time"
)

type counter struct {
	mu     sync.Mutex
	values map[string]int64
}

func (c *counter) add(name string, delta int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[name] += delta
	return c.values[name]
}

func handle(c *counter) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		var body struct {
			Name  string `json:"name"`
			Delta int64  `json:"delta"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]int64{"value": c.add(body.Name, body.Delta)})
	}
}

func main() {
	mux := http.NewServeMux()
	mux.Handle("/count", handle(&counter{values: map[string]int64{}}))
	srv := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	if err := srv.ListenAndServe(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	_ = srv.Shutdown(context.Background())
}

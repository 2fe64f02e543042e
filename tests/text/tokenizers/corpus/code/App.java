package com.example.inventory;

import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.*;

@RestController
@RequestMapping("/api/items")
public class ItemController {
    private final Map<String, Item> items = new ConcurrentHashMap<>();

    @GetMapping
    public List<Item> list(@RequestParam(defaultValue = "0") int minStock) {
        return items.values().stream()
                .filter(item -> item.getStock() >= minStock)
                .sorted((a, b) -> a.getName().compareToIgnoreCase(b.getName()))
                .collect(Collectors.toList());
    }

    @PutMapping("/{sku}")
    public ResponseEntity<Item> put(@PathVariable String sku, @RequestBody ItemRequest request) {
        if (request.getStock() < 0) {
            throw new IllegalArgumentException("stock must not be negative: " + request.getStock());
        }
        Item saved = items.merge(sku, new Item(sku, request, Instant.now()), Item::update);
        return ResponseEntity.ok(saved);
    }

    @ExceptionHandler(IllegalArgumentException.class)
    public ResponseEntity<Map<String, String>> onBadInput(IllegalArgumentException e) {
        return ResponseEntity.badRequest().body(Map.of("error", e.getMessage()));
    }
}

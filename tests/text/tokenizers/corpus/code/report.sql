CREATE TABLE IF NOT EXISTS orders (
    id            BIGSERIAL PRIMARY KEY,
    customer_id   BIGINT NOT NULL REFERENCES customers (id),
    status        TEXT NOT NULL DEFAULT 'pending',
    total_cents   INTEGER NOT NULL CHECK (total_cents >= 0),
    created_at    TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX orders_customer_created_idx ON orders (customer_id, created_at DESC);

WITH monthly AS (
    SELECT customer_id, date_trunc('month', created_at) AS month, SUM(total_cents) AS revenue
    FROM orders
    WHERE status IN ('paid', 'shipped') AND created_at >= now() - INTERVAL '12 months'
    GROUP BY customer_id, month
)
SELECT c.name, m.month, m.revenue / 100.0 AS revenue,
       RANK() OVER (PARTITION BY m.month ORDER BY m.revenue DESC) AS position
FROM monthly m
JOIN customers c ON c.id = m.customer_id
WHERE m.revenue > 10000
ORDER BY m.month, position
LIMIT 50;

import { useEffect, useMemo, useState } from 'react';
import type { CartItem, Coupon } from '../types/cart';

interface Props {
  items: CartItem[];
  coupon?: Coupon;
  onCheckout: (total: number) => Promise<void>;
}

export function Cart({ items, coupon, onCheckout }: Props) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);

  const total = useMemo(() => {
    const sum = items.reduce((acc, item) => acc + item.price * item.quantity, 0);
    return coupon ? Math.max(0, sum - coupon.amount) : sum;
  }, [items, coupon]);

  useEffect(() => {
    document.title = `Cart (${items.length})`;
  }, [items.length]);

  async function handleClick() {
    setBusy(true);
    try {
      await onCheckout(total);
    } catch (e) {
      setError(e instanceof Error ? e.message : 'Unknown error');
    } finally {
      setBusy(false);
    }
  }

  return (
    <section className="cart">
      <ul>{items.map((item) => <li key={item.id}>{item.name} × {item.quantity}</li>)}</ul>
      {error && <p role="alert">{error}</p>}
      <button disabled={busy || items.length === 0} onClick={handleClick}>
        Pay {total.toFixed(2)}
      </button>
    </section>
  );
}

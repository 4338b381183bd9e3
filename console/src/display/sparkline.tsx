/** A rate over the last minute as a line as high as a word. */

const [WIDTH, HEIGHT] = [48, 14];

export function Spark({ rates }: { rates: readonly number[] }) {
  const most = Math.max(...rates, 1e-9);
  const step = WIDTH / 59;
  const points = rates.map((each, k) => `${(WIDTH - (rates.length - 1 - k) * step).toFixed(1)},${(HEIGHT - 1 - (each / most) * (HEIGHT - 2)).toFixed(1)}`);
  if (!rates.some((each) => each > 0)) return null;
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} aria-hidden="true">
      <polyline points={points.join(" ")} />
    </svg>
  );
}

/**
 * Waits until a condition holds.
 * @throws Error if it doesn't hold after 30 s
 */
export async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + 30_000
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Waited in vain for ${String(condition)}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

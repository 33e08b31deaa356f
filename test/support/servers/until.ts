/**
 * Waits until something is so.
 * @throws Error when it isn't after 30 s
 */
export async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + 30_000
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`Waited in vain for ${String(isSo)}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

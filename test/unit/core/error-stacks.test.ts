import { expect, onTestFinished, test } from 'vitest'
import { open, type LockOptions } from '../../../src/index.js'

/** Returns the stack of the error that a caller gets. The name of its function is `theCaller`. */
async function stackOf(call: () => Promise<unknown>): Promise<string> {
  async function theCaller(): Promise<unknown> {
    return await call()
  }
  return theCaller().then(
    () => 'no error',
    (error: unknown) => (error as Error).stack!,
  )
}

test.each<[string, () => LockOptions]>([
  ['a wait that is over', () => ({ wait: 5 })],
  ['a wait that was aborted', () => ({ signal: AbortSignal.timeout(5) })],
])('the error of %s has a stack that leads to the caller', async (_, options) => {
  const box = await open('memory:')
  onTestFinished(() => box.close())
  await box.mutex('key').acquire()
  for (const call of [
    async () => await box.mutex('key').acquire(options()),
    async () => await box.mutex('key').run(() => undefined, options()),
  ]) {
    const stack = await stackOf(call)
    expect(stack).toMatch(/^(TimedOutError|AbortedError): .*mutex key on memory:/)
    expect(stack).toContain('theCaller')
  }
})

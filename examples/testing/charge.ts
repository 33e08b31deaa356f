/** The code that the tests of this folder test: it gets its box from its caller. */
import type { Box } from 'signalbox'

/** Charges an invoice. Only one process at a time does that, and it stops if it loses the lock. */
export async function charge(
  box: Box,
  invoice: string,
  pay: (signal: AbortSignal) => unknown,
): Promise<void> {
  await box.mutex(`invoice:${invoice}`).run(({ signal }) => pay(signal), { wait: '5s', lease: '10s' })
}

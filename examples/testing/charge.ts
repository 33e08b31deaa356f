/** The code under test. Its caller passes the box. */
import type { Box } from 'signalbox'

/** Charges an invoice. Only one process at a time charges it, and it stops if it loses the lock. */
export async function charge(
  box: Box,
  invoice: string,
  pay: (signal: AbortSignal) => unknown,
): Promise<void> {
  await box.mutex(`invoice:${invoice}`).run(({ signal }) => pay(signal), { wait: '5s', lease: '10s' })
}

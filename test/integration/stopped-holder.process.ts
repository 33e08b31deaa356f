/**
 * Holds a key with a renewed lease. When it detects the loss of the grant, it still calls `release`, and prints the
 * outcome.
 */
import { open, type Duration } from 'signalbox'

const box = await open(process.argv[2]!)
const grant = await box.mutex('held').acquire({ lease: process.argv[3] as Duration })
console.log('holding')
const timer = setInterval(() => {
  try {
    grant.assertHeld()
  } catch {
    clearInterval(timer)
    grant.release().then(
      () => console.log('released'),
      () => console.log('lost'),
    )
  }
}, 1)

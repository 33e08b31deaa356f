/**
 * A mailbox in a process or thread of its own: `mailbox.process.js MODE FOLDER [ADDRESS...]`. Prints its address, and
 * runs until its standard input ends, unless its mode says otherwise.
 *
 * - echo: sends each message back to the address before the first space of the message
 * - listen: ignores messages
 * - flood: sends more messages to the addresses than fit into the buffers of a receiver that does not read, watches them,
 *   and has nothing left to do after the first byte of standard input
 */
import { systemClock } from '../../src/base/clock.js'
import { Mailbox } from '../../src/engines/file/mailbox.js'

const [mode, folder = '', ...addresses] = process.argv.slice(2)

const mailbox = await Mailbox.open(
  folder,
  message => {
    if (mode === 'echo') void mailbox.send(message.split(' ', 1)[0]!, message)
  },
  systemClock,
)

if (mode === 'flood') {
  for (const address of addresses) {
    mailbox.watch(address, () => process.exit(1))
    for (let number = 0; number < 10_000; number++) void mailbox.send(address, `${mailbox.address} ${number}`)
  }
  process.stdin.once('data', () => process.stdin.destroy())
} else process.stdin.resume()
process.stdout.write(`${mailbox.address}\n`)

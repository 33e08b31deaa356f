/**
 * A mailbox in a process or thread of its own: `mailbox.process.js MODE FOLDER [ADDRESS...]`. Prints its address, and
 * runs until its standard input ends, unless its mode says otherwise.
 *
 * - echo: sends each message back to the address before the first space of the message
 * - listen: ignores messages
 * - close, exit: closes its mailbox and exits, or exits without closing it, at the first byte of standard input
 * - finish: sends to the addresses and watches them, and has nothing left to do after the first byte of standard input
 * - flood: like finish, but sends more messages than fit into the buffers of a receiver that does not read
 * - crowd: 50 mailboxes, each of which sends its address to each of the addresses
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

switch (mode) {
  case 'finish':
  case 'flood':
    for (const address of addresses) {
      mailbox.watch(address, () => process.exit(1))
      const messages = mode === 'flood' ? 10_000 : 1
      for (let number = 0; number < messages; number++)
        void mailbox.send(address, `${mailbox.address} ${number}`)
    }
    process.stdin.once('data', () => process.stdin.destroy())
    break
  case 'crowd':
    for (let number = 0; number < 50; number++) {
      const member = await Mailbox.open(folder, () => {}, systemClock)
      for (const address of addresses) void member.send(address, member.address)
    }
    process.stdin.resume()
    break
  case 'close':
    process.stdin.once('data', () => void mailbox.close().then(() => process.exit()))
    break
  case 'exit':
    process.stdin.once('data', () => process.exit())
    break
  default:
    process.stdin.resume()
}
process.stdout.write(`${mailbox.address}\n`)

/** The broker of live-mutex: `node live-mutex-broker.process.js SOCKET`. */
import { Broker } from 'live-mutex'

await new Broker({ udsPath: process.argv[2]! }).ensure()
process.send!('listening')
process.on('disconnect', () => process.exit(1))

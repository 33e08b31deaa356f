import type { Guarantees } from '../../guarantees.js'

/** What the ZooKeeper engine promises. */
export const ZOOKEEPER_GUARANTEES: Guarantees = {
  engine: 'zookeeper',
  scope: 'network',
  deadHolder: 'session timeout',
  durability: 'power loss',
  weaknesses: [
    {
      promise: 'P2',
      how: 'Tokens fall when an ensemble loses its data, because it then counts its transactions from the beginning.',
    },
  ],
}

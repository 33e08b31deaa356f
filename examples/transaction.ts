/**
 * Applies transfers that arrive as JSON on standard input, one on each line. A queue may deliver a transfer twice, and
 * to several processes. The `id` of the transfer ensures that it is applied once.
 *
 *     DATABASE_URL=postgres://localhost/app node transaction.js < transfers
 *     {"id":"t1","from":"anna","to":"ben","amount":30}
 */
import { createInterface } from 'node:readline'
import { open, type Transaction } from 'signalbox'

interface Transfer {
  readonly id: string
  readonly from: string
  readonly to: string
  readonly amount: number
}

const { DATABASE_URL = 'postgres://localhost/app' } = process.env

await using box = await open(DATABASE_URL)
const accounts = box.store('accounts')

function add(transaction: Transaction, account: string, amount: number): void {
  transaction.put(account, (transaction.get<number>(account) ?? 0) + amount)
}

async function apply({ id, from, to, amount }: Transfer): Promise<void> {
  const { applied } = await accounts.transaction(
    [from, to],
    transaction => {
      add(transaction, from, -amount)
      add(transaction, to, amount)
    },
    // Keeps the ID for longer than the queue may redeliver a message.
    { id, retention: '7d', wait: '30s' },
  )
  console.log(id, applied ? 'applied' : 'applied before')
}

const transfers: Promise<void>[] = []
for await (const line of createInterface({ input: process.stdin }))
  transfers.push(apply(JSON.parse(line) as Transfer))
await Promise.all(transfers)
for (const account of ['anna', 'ben']) console.log(account, (await accounts.get<number>(account))?.value ?? 0)

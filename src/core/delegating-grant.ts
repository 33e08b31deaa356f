import type { SqlTransaction } from '../engine/contract.js'
import { printedAs } from '../base/printed.js'
import { printedGrant, type Grant } from './grant.js'

/** A grant that is held by another grant. A subclass defines what its release does. */
export abstract class DelegatingGrant implements Grant {
  static {
    printedAs(this, 'Grant', grant => printedGrant(grant))
  }

  constructor(protected readonly held: Grant) {}

  get token(): bigint {
    return this.held.token
  }

  get keys(): readonly string[] {
    return this.held.keys
  }

  get signal(): AbortSignal {
    return this.held.signal
  }

  assertHeld(): void {
    this.held.assertHeld()
  }

  fence(transaction: SqlTransaction): Promise<void> {
    return this.held.fence(transaction)
  }

  expiresIn(): number {
    return this.held.expiresIn()
  }

  abstract release(): Promise<void>

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => undefined)
  }
}

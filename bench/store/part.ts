import type { Work } from '../work.js'
import { storeTransfers } from './transfers.js'

/** Transactions. */
export const storeWorks: readonly Work[] = [storeTransfers]

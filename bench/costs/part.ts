import type { Work } from '../work.js'
import { bystanders } from './bystanders.js'
import { listeners } from './listeners.js'
import { verbs } from './verbs.js'

/** The costs of Signalbox's features, compared with each other and not with other libraries. */
export const costWorks: readonly Work[] = [verbs, bystanders, listeners]

import type { Work } from '../work.js'
import { bystanders } from './bystanders.js'
import { listeners } from './listeners.js'
import { verbs } from './verbs.js'

/** What our own features cost compared with each other; nothing here says anything about other libraries. */
export const costWorks: readonly Work[] = [verbs, bystanders, listeners]

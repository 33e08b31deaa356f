import { testBlocks } from './block-tests.js'
import { readAllBlocks, readme } from './pages.js'

// A smoke test runs those of README.
testBlocks(readAllBlocks().filter(({ page }) => page !== readme))

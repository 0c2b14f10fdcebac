// Opens a page in Chromium that has nothing but a HAR file to load it from.
const { chromium } = require("/opt/har/node_modules/playwright-core");
(async () => {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const context = await browser.newContext();
  await context.routeFromHAR("/in/session.har", { notFound: "abort" });
  const page = await context.newPage();
  await page.goto("http://page.example/?from=har");
  await page.waitForFunction(() => document.title !== "");
  console.log("replayed " + (await page.title()));
  await browser.close();
})().catch((err) => {
  console.log("failed " + err);
  process.exit(3);
});

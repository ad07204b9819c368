// Texts of a page that stand out too little from what is behind them.
(() => {
  const parts = color => color.match(/[\d.]+/g).map(Number);
  const light = ([red, green, blue]) => [red, green, blue]
    .map(part => part / 255)
    .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const ground = element => {
    for (let one = element; one; one = one.parentElement) {
      const color = parts(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const hasText = element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
  return [...document.querySelectorAll('body *:not(title, desc)')].filter(hasText).filter(element => {
    const style = getComputedStyle(element);
    const ink = light(parts(element.closest('svg') ? style.fill : style.color));
    const back = light(ground(element));
    return (Math.max(ink, back) + 0.05) / (Math.min(ink, back) + 0.05) < 4.5;
  }).map(element => element.outerHTML.slice(0, 120));
})()
